//! GPUs of a node.
