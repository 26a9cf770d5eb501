// Package installer installs a control plane in a host cluster, and removes it again.
//
// An installation is a request (package config), a set of objects that pure functions (package components) make of it,
// certificates that are loaded or created (package credentials), and phases (package phases) that write the objects
// and wait for them. Phases wait only for what they need, so most of them run at the same time. What is as wanted
// already is left alone: running an installation again changes nothing, and finishes one that was interrupted.
package installer
