// Package local runs a whole federation on one machine: a control plane and its
// members as processes, without containers or root. Everything a federation keeps
// is in one directory.
package local
