// Package render compares the Helm chart with the objects that the installer makes. Its test needs the modules of
// go.helm.mod. hack/test.sh runs it.
package render
