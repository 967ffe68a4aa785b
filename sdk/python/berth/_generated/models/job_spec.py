from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.job_kind import JobKind
from ..models.open_mode import OpenMode
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.component_spec import ComponentSpec
    from ..models.container_spec import ContainerSpec
    from ..models.job_spec_environment import JobSpecEnvironment
    from ..models.job_spec_labels import JobSpecLabels
    from ..models.requeue_spec import RequeueSpec
    from ..models.resource_request import ResourceRequest
    from ..models.signal_spec import SignalSpec


T = TypeVar("T", bound="JobSpec")


@_attrs_define
class JobSpec:
    """A job to submit. It has either a `script`, run once on the first node (its `srun` lines open parallel steps), or a
    `command`, run once for each task on all nodes.

        Attributes:
            name (None | str | Unset):
            account (None | str | Unset):
            partition (None | str | Unset):
            qos (None | str | Unset):
            script (None | str | Unset): Text of a batch script, beginning with `#!`. At most 4 MiB.
            script_args (list[str] | Unset): Arguments of the script.
            command (list[str] | None | Unset): Program and arguments of a job without a script.
            container (ContainerSpec | None | Unset):
            resources (ResourceRequest | Unset): What a job asks for. All of it is optional: one task of one CPU on one node
                is the default.

                `nodes` × `tasks_per_node` and `tasks` follow Slurm's `-N`, `--ntasks-per-node` and `-n`. At most one of the
                three memory
                fields may be given; without any the partition's default applies.
            time_limit_seconds (int | None | Unset):
            time_min_seconds (int | None | Unset):
            begin (datetime.datetime | None | Unset): Not before this instant.
            deadline (datetime.datetime | None | Unset): The job must have ended by this instant, or it is removed.
            constraint (None | str | Unset): Features of its nodes: of each `a&b`, `a|b`; the same of all nodes `[a|b]`; of
                so many `[a*2&b*4]`.
            prefer (None | str | Unset): Features that its nodes should have besides if that costs no time, in the same
                form.
            nodelist (None | str | Unset): Nodes to use, all of them, in host-list form `n[1-4,7]`.
            exclude (None | str | Unset): Nodes to avoid, in host-list form.
            environment (JobSpecEnvironment | Unset):
            labels (JobSpecLabels | Unset):
            components (list[ComponentSpec] | Unset): Further components of a heterogeneous job, each with resources of its
                own; the job itself is component 0 and runs the script. All
                start together. At most 127.
            array (None | str | Unset): Array indices in Slurm's form: `0-15:4,20%2`.
            dependencies (list[str] | Unset): Slurm's form, one condition each: `afterok:1201`. All must hold; with
                `dependency_any` one suffices.
            dependency_any (bool | Unset):  Default: False.
            requeue (RequeueSpec | Unset): Whether the job runs again after a failure that is not its own.
            signal (None | SignalSpec | Unset):
            hold (bool | Unset): Submit held: nothing starts until released. Default: False.
            nice (int | Unset): Lowers the priority; negative values need an operator's role. Default: 0.
            comment (None | str | Unset):
            wckey (None | str | Unset):
            licenses (None | str | Unset): Licences to hold while it runs: all of `matlab:2,ansys`, or any one of
                `matlab:2|comsol`.
            reservation (None | str | Unset):
            working_directory (None | str | Unset):
            stdout (None | str | Unset): File in the job's view that gets a copy of the output, with Slurm's patterns (`%j`,
                `%A_%a`, `%x`, `%N`, …).
            stderr (None | str | Unset):
            stdin (None | str | Unset):
            stream_stdin (bool | Unset): Standard input comes in pieces to `/v1/jobs/{job_id}/stdin`; each task reads all of
                it. Default: False.
            open_mode (OpenMode | Unset):
            kind (JobKind | Unset):
    """

    name: None | str | Unset = UNSET
    account: None | str | Unset = UNSET
    partition: None | str | Unset = UNSET
    qos: None | str | Unset = UNSET
    script: None | str | Unset = UNSET
    script_args: list[str] | Unset = UNSET
    command: list[str] | None | Unset = UNSET
    container: ContainerSpec | None | Unset = UNSET
    resources: ResourceRequest | Unset = UNSET
    time_limit_seconds: int | None | Unset = UNSET
    time_min_seconds: int | None | Unset = UNSET
    begin: datetime.datetime | None | Unset = UNSET
    deadline: datetime.datetime | None | Unset = UNSET
    constraint: None | str | Unset = UNSET
    prefer: None | str | Unset = UNSET
    nodelist: None | str | Unset = UNSET
    exclude: None | str | Unset = UNSET
    environment: JobSpecEnvironment | Unset = UNSET
    labels: JobSpecLabels | Unset = UNSET
    components: list[ComponentSpec] | Unset = UNSET
    array: None | str | Unset = UNSET
    dependencies: list[str] | Unset = UNSET
    dependency_any: bool | Unset = False
    requeue: RequeueSpec | Unset = UNSET
    signal: None | SignalSpec | Unset = UNSET
    hold: bool | Unset = False
    nice: int | Unset = 0
    comment: None | str | Unset = UNSET
    wckey: None | str | Unset = UNSET
    licenses: None | str | Unset = UNSET
    reservation: None | str | Unset = UNSET
    working_directory: None | str | Unset = UNSET
    stdout: None | str | Unset = UNSET
    stderr: None | str | Unset = UNSET
    stdin: None | str | Unset = UNSET
    stream_stdin: bool | Unset = False
    open_mode: OpenMode | Unset = UNSET
    kind: JobKind | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.container_spec import ContainerSpec  # noqa: PLC0415
        from ..models.signal_spec import SignalSpec  # noqa: PLC0415

        name: None | str | Unset
        if isinstance(self.name, Unset):
            name = UNSET
        else:
            name = self.name

        account: None | str | Unset
        if isinstance(self.account, Unset):
            account = UNSET
        else:
            account = self.account

        partition: None | str | Unset
        if isinstance(self.partition, Unset):
            partition = UNSET
        else:
            partition = self.partition

        qos: None | str | Unset
        if isinstance(self.qos, Unset):
            qos = UNSET
        else:
            qos = self.qos

        script: None | str | Unset
        if isinstance(self.script, Unset):
            script = UNSET
        else:
            script = self.script

        script_args: list[str] | Unset = UNSET
        if not isinstance(self.script_args, Unset):
            script_args = self.script_args

        command: list[str] | None | Unset
        if isinstance(self.command, Unset):
            command = UNSET
        elif isinstance(self.command, list):
            command = self.command

        else:
            command = self.command

        container: dict[str, Any] | None | Unset
        if isinstance(self.container, Unset):
            container = UNSET
        elif isinstance(self.container, ContainerSpec):
            container = self.container.to_dict()
        else:
            container = self.container

        resources: dict[str, Any] | Unset = UNSET
        if not isinstance(self.resources, Unset):
            resources = self.resources.to_dict()

        time_limit_seconds: int | None | Unset
        if isinstance(self.time_limit_seconds, Unset):
            time_limit_seconds = UNSET
        else:
            time_limit_seconds = self.time_limit_seconds

        time_min_seconds: int | None | Unset
        if isinstance(self.time_min_seconds, Unset):
            time_min_seconds = UNSET
        else:
            time_min_seconds = self.time_min_seconds

        begin: None | str | Unset
        if isinstance(self.begin, Unset):
            begin = UNSET
        elif isinstance(self.begin, datetime.datetime):
            begin = self.begin.isoformat()
        else:
            begin = self.begin

        deadline: None | str | Unset
        if isinstance(self.deadline, Unset):
            deadline = UNSET
        elif isinstance(self.deadline, datetime.datetime):
            deadline = self.deadline.isoformat()
        else:
            deadline = self.deadline

        constraint: None | str | Unset
        if isinstance(self.constraint, Unset):
            constraint = UNSET
        else:
            constraint = self.constraint

        prefer: None | str | Unset
        if isinstance(self.prefer, Unset):
            prefer = UNSET
        else:
            prefer = self.prefer

        nodelist: None | str | Unset
        if isinstance(self.nodelist, Unset):
            nodelist = UNSET
        else:
            nodelist = self.nodelist

        exclude: None | str | Unset
        if isinstance(self.exclude, Unset):
            exclude = UNSET
        else:
            exclude = self.exclude

        environment: dict[str, Any] | Unset = UNSET
        if not isinstance(self.environment, Unset):
            environment = self.environment.to_dict()

        labels: dict[str, Any] | Unset = UNSET
        if not isinstance(self.labels, Unset):
            labels = self.labels.to_dict()

        components: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.components, Unset):
            components = []
            for components_item_data in self.components:
                components_item = components_item_data.to_dict()
                components.append(components_item)

        array: None | str | Unset
        if isinstance(self.array, Unset):
            array = UNSET
        else:
            array = self.array

        dependencies: list[str] | Unset = UNSET
        if not isinstance(self.dependencies, Unset):
            dependencies = self.dependencies

        dependency_any = self.dependency_any

        requeue: dict[str, Any] | Unset = UNSET
        if not isinstance(self.requeue, Unset):
            requeue = self.requeue.to_dict()

        signal: dict[str, Any] | None | Unset
        if isinstance(self.signal, Unset):
            signal = UNSET
        elif isinstance(self.signal, SignalSpec):
            signal = self.signal.to_dict()
        else:
            signal = self.signal

        hold = self.hold

        nice = self.nice

        comment: None | str | Unset
        if isinstance(self.comment, Unset):
            comment = UNSET
        else:
            comment = self.comment

        wckey: None | str | Unset
        if isinstance(self.wckey, Unset):
            wckey = UNSET
        else:
            wckey = self.wckey

        licenses: None | str | Unset
        if isinstance(self.licenses, Unset):
            licenses = UNSET
        else:
            licenses = self.licenses

        reservation: None | str | Unset
        if isinstance(self.reservation, Unset):
            reservation = UNSET
        else:
            reservation = self.reservation

        working_directory: None | str | Unset
        if isinstance(self.working_directory, Unset):
            working_directory = UNSET
        else:
            working_directory = self.working_directory

        stdout: None | str | Unset
        if isinstance(self.stdout, Unset):
            stdout = UNSET
        else:
            stdout = self.stdout

        stderr: None | str | Unset
        if isinstance(self.stderr, Unset):
            stderr = UNSET
        else:
            stderr = self.stderr

        stdin: None | str | Unset
        if isinstance(self.stdin, Unset):
            stdin = UNSET
        else:
            stdin = self.stdin

        stream_stdin = self.stream_stdin

        open_mode: str | Unset = UNSET
        if not isinstance(self.open_mode, Unset):
            open_mode = self.open_mode.value

        kind: str | Unset = UNSET
        if not isinstance(self.kind, Unset):
            kind = self.kind.value

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if name is not UNSET:
            field_dict["name"] = name
        if account is not UNSET:
            field_dict["account"] = account
        if partition is not UNSET:
            field_dict["partition"] = partition
        if qos is not UNSET:
            field_dict["qos"] = qos
        if script is not UNSET:
            field_dict["script"] = script
        if script_args is not UNSET:
            field_dict["script_args"] = script_args
        if command is not UNSET:
            field_dict["command"] = command
        if container is not UNSET:
            field_dict["container"] = container
        if resources is not UNSET:
            field_dict["resources"] = resources
        if time_limit_seconds is not UNSET:
            field_dict["time_limit_seconds"] = time_limit_seconds
        if time_min_seconds is not UNSET:
            field_dict["time_min_seconds"] = time_min_seconds
        if begin is not UNSET:
            field_dict["begin"] = begin
        if deadline is not UNSET:
            field_dict["deadline"] = deadline
        if constraint is not UNSET:
            field_dict["constraint"] = constraint
        if prefer is not UNSET:
            field_dict["prefer"] = prefer
        if nodelist is not UNSET:
            field_dict["nodelist"] = nodelist
        if exclude is not UNSET:
            field_dict["exclude"] = exclude
        if environment is not UNSET:
            field_dict["environment"] = environment
        if labels is not UNSET:
            field_dict["labels"] = labels
        if components is not UNSET:
            field_dict["components"] = components
        if array is not UNSET:
            field_dict["array"] = array
        if dependencies is not UNSET:
            field_dict["dependencies"] = dependencies
        if dependency_any is not UNSET:
            field_dict["dependency_any"] = dependency_any
        if requeue is not UNSET:
            field_dict["requeue"] = requeue
        if signal is not UNSET:
            field_dict["signal"] = signal
        if hold is not UNSET:
            field_dict["hold"] = hold
        if nice is not UNSET:
            field_dict["nice"] = nice
        if comment is not UNSET:
            field_dict["comment"] = comment
        if wckey is not UNSET:
            field_dict["wckey"] = wckey
        if licenses is not UNSET:
            field_dict["licenses"] = licenses
        if reservation is not UNSET:
            field_dict["reservation"] = reservation
        if working_directory is not UNSET:
            field_dict["working_directory"] = working_directory
        if stdout is not UNSET:
            field_dict["stdout"] = stdout
        if stderr is not UNSET:
            field_dict["stderr"] = stderr
        if stdin is not UNSET:
            field_dict["stdin"] = stdin
        if stream_stdin is not UNSET:
            field_dict["stream_stdin"] = stream_stdin
        if open_mode is not UNSET:
            field_dict["open_mode"] = open_mode
        if kind is not UNSET:
            field_dict["kind"] = kind

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.component_spec import ComponentSpec  # noqa: PLC0415
        from ..models.container_spec import ContainerSpec  # noqa: PLC0415
        from ..models.job_spec_environment import JobSpecEnvironment  # noqa: PLC0415
        from ..models.job_spec_labels import JobSpecLabels  # noqa: PLC0415
        from ..models.requeue_spec import RequeueSpec  # noqa: PLC0415
        from ..models.resource_request import ResourceRequest  # noqa: PLC0415
        from ..models.signal_spec import SignalSpec  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_name(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        name = _parse_name(d.pop("name", UNSET))

        def _parse_account(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        account = _parse_account(d.pop("account", UNSET))

        def _parse_partition(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        partition = _parse_partition(d.pop("partition", UNSET))

        def _parse_qos(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        qos = _parse_qos(d.pop("qos", UNSET))

        def _parse_script(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        script = _parse_script(d.pop("script", UNSET))

        script_args = cast(list[str], d.pop("script_args", UNSET))

        def _parse_command(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                command_type_0 = cast(list[str], data)

                return command_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        command = _parse_command(d.pop("command", UNSET))

        def _parse_container(data: object) -> ContainerSpec | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                container_type_0 = ContainerSpec.from_dict(data)

                return container_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(ContainerSpec | None | Unset, data)

        container = _parse_container(d.pop("container", UNSET))

        _resources = d.pop("resources", UNSET)
        resources: ResourceRequest | Unset
        if isinstance(_resources, Unset):
            resources = UNSET
        else:
            resources = ResourceRequest.from_dict(_resources)

        def _parse_time_limit_seconds(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        time_limit_seconds = _parse_time_limit_seconds(d.pop("time_limit_seconds", UNSET))

        def _parse_time_min_seconds(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        time_min_seconds = _parse_time_min_seconds(d.pop("time_min_seconds", UNSET))

        def _parse_begin(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                begin_type_0 = datetime.datetime.fromisoformat(data)

                return begin_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        begin = _parse_begin(d.pop("begin", UNSET))

        def _parse_deadline(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                deadline_type_0 = datetime.datetime.fromisoformat(data)

                return deadline_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        deadline = _parse_deadline(d.pop("deadline", UNSET))

        def _parse_constraint(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        constraint = _parse_constraint(d.pop("constraint", UNSET))

        def _parse_prefer(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        prefer = _parse_prefer(d.pop("prefer", UNSET))

        def _parse_nodelist(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        nodelist = _parse_nodelist(d.pop("nodelist", UNSET))

        def _parse_exclude(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        exclude = _parse_exclude(d.pop("exclude", UNSET))

        _environment = d.pop("environment", UNSET)
        environment: JobSpecEnvironment | Unset
        if isinstance(_environment, Unset):
            environment = UNSET
        else:
            environment = JobSpecEnvironment.from_dict(_environment)

        _labels = d.pop("labels", UNSET)
        labels: JobSpecLabels | Unset
        if isinstance(_labels, Unset):
            labels = UNSET
        else:
            labels = JobSpecLabels.from_dict(_labels)

        _components = d.pop("components", UNSET)
        components: list[ComponentSpec] | Unset = UNSET
        if _components is not UNSET:
            components = []
            for components_item_data in _components:
                components_item = ComponentSpec.from_dict(components_item_data)

                components.append(components_item)

        def _parse_array(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        array = _parse_array(d.pop("array", UNSET))

        dependencies = cast(list[str], d.pop("dependencies", UNSET))

        dependency_any = d.pop("dependency_any", UNSET)

        _requeue = d.pop("requeue", UNSET)
        requeue: RequeueSpec | Unset
        if isinstance(_requeue, Unset):
            requeue = UNSET
        else:
            requeue = RequeueSpec.from_dict(_requeue)

        def _parse_signal(data: object) -> None | SignalSpec | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                signal_type_0 = SignalSpec.from_dict(data)

                return signal_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | SignalSpec | Unset, data)

        signal = _parse_signal(d.pop("signal", UNSET))

        hold = d.pop("hold", UNSET)

        nice = d.pop("nice", UNSET)

        def _parse_comment(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        comment = _parse_comment(d.pop("comment", UNSET))

        def _parse_wckey(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        wckey = _parse_wckey(d.pop("wckey", UNSET))

        def _parse_licenses(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        licenses = _parse_licenses(d.pop("licenses", UNSET))

        def _parse_reservation(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        reservation = _parse_reservation(d.pop("reservation", UNSET))

        def _parse_working_directory(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        working_directory = _parse_working_directory(d.pop("working_directory", UNSET))

        def _parse_stdout(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        stdout = _parse_stdout(d.pop("stdout", UNSET))

        def _parse_stderr(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        stderr = _parse_stderr(d.pop("stderr", UNSET))

        def _parse_stdin(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        stdin = _parse_stdin(d.pop("stdin", UNSET))

        stream_stdin = d.pop("stream_stdin", UNSET)

        _open_mode = d.pop("open_mode", UNSET)
        open_mode: OpenMode | Unset
        if isinstance(_open_mode, Unset):
            open_mode = UNSET
        else:
            open_mode = OpenMode(_open_mode)

        _kind = d.pop("kind", UNSET)
        kind: JobKind | Unset
        if isinstance(_kind, Unset):
            kind = UNSET
        else:
            kind = JobKind(_kind)

        job_spec = cls(
            name=name,
            account=account,
            partition=partition,
            qos=qos,
            script=script,
            script_args=script_args,
            command=command,
            container=container,
            resources=resources,
            time_limit_seconds=time_limit_seconds,
            time_min_seconds=time_min_seconds,
            begin=begin,
            deadline=deadline,
            constraint=constraint,
            prefer=prefer,
            nodelist=nodelist,
            exclude=exclude,
            environment=environment,
            labels=labels,
            components=components,
            array=array,
            dependencies=dependencies,
            dependency_any=dependency_any,
            requeue=requeue,
            signal=signal,
            hold=hold,
            nice=nice,
            comment=comment,
            wckey=wckey,
            licenses=licenses,
            reservation=reservation,
            working_directory=working_directory,
            stdout=stdout,
            stderr=stderr,
            stdin=stdin,
            stream_stdin=stream_stdin,
            open_mode=open_mode,
            kind=kind,
        )

        return job_spec
