package register

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// stdinName stands for standard input where a file is expected.
const stdinName = "-"

// maxTokenFile is the most that is read of a file with a token, which has 23
// characters.
const maxTokenFile = 4 << 10

// readToken returns the bootstrap token of --token or of --token-file; "-" in
// either reads it from stdin. Space around it is dropped.
func readToken(token, file string, stdin io.Reader) (string, error) {
	switch {
	case token != "" && file != "":
		return "", errors.New("--token and --token-file cannot be used together")
	case file == stdinName, token == stdinName:
		return tokenFrom(stdin, "standard input")
	case file == "":
		return token, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("reading --token-file: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	return tokenFrom(f, file)
}

// tokenFrom never repeats what it read: another file may hold another secret.
func tokenFrom(r io.Reader, name string) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxTokenFile+1))
	if err != nil {
		return "", fmt.Errorf("reading the token from %s: %w", name, err)
	}
	token := strings.TrimSpace(string(data))
	switch {
	case token == "":
		return "", fmt.Errorf("%s holds no token; make one with \"token create\"", name)
	case len(data) > maxTokenFile, strings.ContainsAny(token, " \t\r\n"):
		return "", fmt.Errorf("%s holds more than a token; it must be one line such as abcdef.0123456789abcdef", name)
	}
	return token, nil
}
