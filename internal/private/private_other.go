//go:build !unix

package private

import "io/fs"

const noFollow = 0

func current() identity { return identity{} }

func entryOf(fs.FileInfo) (entry, bool) { return entry{}, false }
