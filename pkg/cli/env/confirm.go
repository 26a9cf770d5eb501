package env

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
)

// Confirm prompts until the answer is yes or no, and reports whether it is yes.
func (e *Env) Confirm() (bool, error) {
	answers := bufio.NewScanner(e.In)
	for {
		if _, err := fmt.Fprint(e.Out, "Please type (y)es or (n)o and then press enter:"); err != nil {
			return false, err
		}
		if !answers.Scan() || strings.TrimSpace(answers.Text()) == "" {
			return false, errors.Join(errors.New("no answer was given; use --force to skip the confirmation"), answers.Err())
		}
		switch strings.ToLower(strings.TrimSpace(answers.Text())) {
		case "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		}
	}
}
