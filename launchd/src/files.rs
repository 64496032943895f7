//! Files that others read at any time: written whole or not at all.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::Access;

use crate::{Service, ServiceError, ServiceFile};

/// Says whether the file is there with exactly this content.
pub(crate) fn is_current(file: &ServiceFile) -> bool {
    fs::read(&file.path).is_ok_and(|content| content == file.content.as_bytes())
}

/// Replaces the file, and makes its directory where it is missing.
pub(crate) fn write(file: &ServiceFile) -> Result<(), ServiceError> {
    let failed = |source| ServiceError::io("write", &file.path, source);
    let directory = file.path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(directory).map_err(failed)?;
    let mut new = tempfile::NamedTempFile::new_in(directory).map_err(failed)?;
    new.write_all(file.content.as_bytes()).map_err(failed)?;
    // launchd refuses a file that others may write; there are no secrets in it.
    new.as_file()
        .set_permissions(Permissions::from_mode(0o644))
        .map_err(failed)?;
    new.persist(&file.path)
        .map_err(|error| failed(error.error))?;
    Ok(())
}

/// Removes the file; returns whether it was there.
pub(crate) fn remove(path: &Path) -> Result<bool, ServiceError> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(source) => Err(ServiceError::io("remove", path, source)),
    }
}

/// Says whether files can be made in a directory, which may have to be made first. Nothing is made.
pub(crate) fn check_directory(directory: &Path) -> Result<(), ServiceError> {
    let exists = directory
        .ancestors()
        .find(|path| path.symlink_metadata().is_ok());
    let exists = exists.unwrap_or(Path::new("/"));
    let failed = |source| ServiceError::io("make files in", directory, source);
    if !exists.is_dir() {
        return Err(failed(ErrorKind::NotADirectory.into()));
    }
    let access = Access::WRITE_OK | Access::EXEC_OK;
    rustix::fs::access(exists, access).map_err(|error| failed(error.into()))
}

/// Makes the directories of the socket and the log, for the user alone; those that exist stay as they are.
pub(crate) fn make_directories(service: &Service) -> Result<(), ServiceError> {
    for directory in service.directories() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)
            .map_err(|source| ServiceError::io("make the directory", &directory, source))?;
    }
    Ok(())
}
