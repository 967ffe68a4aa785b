from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..models.network import Network
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.mount_spec import MountSpec


T = TypeVar("T", bound="ContainerSpec")


@_attrs_define
class ContainerSpec:
    """
    Attributes:
        image (str): Image reference: `registry.example/torch:2.9`, by tag or digest, or `oci:/path/to/layout:tag` on
            the node.
        mounts (list[MountSpec] | Unset):
        read_only_root (bool | Unset):
        network (Network | Unset):
    """

    image: str
    mounts: list[MountSpec] | Unset = UNSET
    read_only_root: bool | Unset = UNSET
    network: Network | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        image = self.image

        mounts: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.mounts, Unset):
            mounts = []
            for mounts_item_data in self.mounts:
                mounts_item = mounts_item_data.to_dict()
                mounts.append(mounts_item)

        read_only_root = self.read_only_root

        network: str | Unset = UNSET
        if not isinstance(self.network, Unset):
            network = self.network.value

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "image": image,
            }
        )
        if mounts is not UNSET:
            field_dict["mounts"] = mounts
        if read_only_root is not UNSET:
            field_dict["read_only_root"] = read_only_root
        if network is not UNSET:
            field_dict["network"] = network

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.mount_spec import MountSpec  # noqa: PLC0415

        d = dict(src_dict)
        image = d.pop("image")

        _mounts = d.pop("mounts", UNSET)
        mounts: list[MountSpec] | Unset = UNSET
        if _mounts is not UNSET:
            mounts = []
            for mounts_item_data in _mounts:
                mounts_item = MountSpec.from_dict(mounts_item_data)

                mounts.append(mounts_item)

        read_only_root = d.pop("read_only_root", UNSET)

        _network = d.pop("network", UNSET)
        network: Network | Unset
        if isinstance(_network, Unset):
            network = UNSET
        else:
            network = Network(_network)

        container_spec = cls(
            image=image,
            mounts=mounts,
            read_only_root=read_only_root,
            network=network,
        )

        return container_spec
