//! A daemon that is killed at any moment leaves nothing behind that its successor stumbles over.
