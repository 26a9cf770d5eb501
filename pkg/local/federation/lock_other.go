//go:build !unix

package federation

import "errors"

func lock(string) (func(), error) {
	return nil, errors.New("local federations need a Unix system; run the command in WSL")
}
