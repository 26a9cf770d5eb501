// Package pki creates certificate authorities and the certificates they sign, and keeps them in a store so that
// a second run finds what the first one made.
//
// The generation functions are pure: everything they need, the time included, is an argument. Store adds
// load-or-create on top of a Storage, which is a directory (Dir) or a map (Memory, the content of a Secret).
package pki
