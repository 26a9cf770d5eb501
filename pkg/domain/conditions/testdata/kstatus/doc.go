// Package kstatus judges the status of templates as Flux, Helm 4 and others do. Its
// test needs the modules of go.kstatus.mod: nothing that ships depends on what
// kstatus depends on. hack/test.sh runs it.
package kstatus
