package dashboard

import (
	"errors"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// open opens a browser with an address. The browser gets a file that only the user can read and that leads there: arguments of programs
// can be read by all users of a machine. remove removes the file.
func open(url string) (remove func(), err error) {
	remove = func() {}
	command, arguments := opener(runtime.GOOS)
	path, err := exec.LookPath(command)
	if err != nil || runtime.GOOS == "linux" && os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return remove, errors.New("there is none on this machine")
	}
	dir, err := os.MkdirTemp("", "karmada-dashboard-")
	if err != nil {
		return remove, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	file := filepath.Join(dir, "dashboard.html")
	page := fmt.Sprintf("<!DOCTYPE html><meta charset=utf-8><meta name=referrer content=no-referrer><meta http-equiv=refresh content=\"0; url=%[1]s\"><title>Dashboard</title><a href=\"%[1]s\">Dashboard</a>\n", html.EscapeString(url))
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		return remove, err
	}
	cmd := exec.Command(path, append(arguments, file)...) //nolint:gosec // the program of the operating system that opens files
	if err := cmd.Start(); err != nil {
		return remove, err
	}
	go func() { _ = cmd.Wait() }()
	return remove, nil
}

// opener returns the command that opens a file of an operating system.
func opener(goos string) (command string, arguments []string) {
	switch goos {
	case "darwin":
		return "open", nil
	case "windows":
		return "rundll32", []string{"url.dll,FileProtocolHandler"}
	}
	return "xdg-open", nil
}
