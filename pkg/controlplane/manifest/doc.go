// Package manifest turns a template into what a Work carries to a member and
// tells whether the member's object still is that. It is pure: every function
// works on the values it is given and nothing else.
//
// Functions that change an object change it in place; the caller owns it. An
// object that comes from a cache must be copied first.
package manifest
