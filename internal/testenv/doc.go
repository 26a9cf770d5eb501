// Package testenv starts real Kubernetes clusters for tests: kubelite processes that start in about a second and are
// gone when the test ends. It links no Kubernetes server code; the program is built once and run.
package testenv
