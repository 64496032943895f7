//! The gRPC service `tandem.v1`, and where on the machine its two sides meet.
//!
//! Owns the definition (`proto/tandem/v1/tandem.proto`) and the types generated from it; [`paths`], the files and the socket that
//! the daemon and its clients agree on; and [`lock`], what the daemon says of itself in its lock files. Must not know what
//! either side does with a message.
//!
//! The generated files are checked in, so building needs neither `protoc` nor a build script;
//! `tests/bootstrap.rs` compares them with the definition and rewrites them on request.

pub mod lock;
pub mod paths;

/// Messages, client and server of package `tandem.v1`.
pub mod v1 {
    #![expect(
        missing_docs,
        clippy::missing_errors_doc,
        clippy::large_enum_variant,
        clippy::allow_attributes_without_reason,
        reason = "generated; the definition documents the messages"
    )]
    include!("generated/tandem.v1.rs");
}

/// The encoded `google.protobuf.FileDescriptorSet` of `tandem.v1` and its imports, for server reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("generated/tandem.v1.bin");

/// Full name of the service, as health checks and reflection spell it.
pub const SERVICE_NAME: &str = "tandem.v1.TandemService";

/// Domain of every `google.rpc.ErrorInfo` that the daemon sends.
pub const ERROR_DOMAIN: &str = "tandem.v1";

/// Version of the service's behaviour, reported in `StatusResponse.api_version`.
pub const API_VERSION: u32 = 1;
