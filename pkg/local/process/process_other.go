//go:build !unix

package process

import (
	"errors"
	"os/exec"
)

var errUnsupported = errors.New("local federations of processes need a Unix system; run the command in WSL")

func detach(*exec.Cmd) {}

func terminate(int) error { return errUnsupported }

func kill(int) error { return errUnsupported }

func startOf(int) (string, error) { return "", errUnsupported }

func ending(int) bool { return false }

func killed(int) bool { return false }
