//go:build !unix

package local

import (
	"errors"
	"os/exec"
)

var (
	errLocked      = errors.New("another command is working on it")
	errUnsupported = errors.New("local federations of processes need a Unix system; run the command in WSL")
)

func detach(*exec.Cmd) {}

func terminate(int) error { return errUnsupported }

func kill(int) error { return errUnsupported }

func lock(string) (func(), error) { return nil, errUnsupported }

func startOf(int) (string, error) { return "", errUnsupported }

func ending(int) bool { return false }

func killed(int) bool { return false }
