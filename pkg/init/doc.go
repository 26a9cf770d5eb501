// Package installer puts a control plane on a host cluster, and takes it away
// again.
//
// An installation is a set of objects that pure functions (package components)
// make of Options, certificates that are loaded or created (package pki), and
// phases that write the objects and wait for them. Phases wait only for what they
// need, so most of them run at the same time. What is as wanted already is left
// alone: running an installation again changes nothing, and finishes one that was
// interrupted.
package installer
