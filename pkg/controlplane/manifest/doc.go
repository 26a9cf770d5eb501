// Package manifest turns a template into the manifest of a Work and compares the
// manifest with the object in a member. It is pure.
//
// Functions that change an object change it in place. An object from a cache must be
// copied first.
package manifest
