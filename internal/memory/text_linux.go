package memory

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// dropProgram releases the pages of the program itself that the start used: most
// of them are never used again, and those that are come back from the page cache.
// Only mappings that cannot be written to are released.
func dropProgram() error {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("finding the program: %w", err)
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("reading the mappings of the program: %w", err)
	}
	defer maps.Close() //nolint:errcheck // only read
	var errs []error
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		begin, end, ok := programMapping(lines.Text(), self)
		if !ok {
			continue
		}
		if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, begin, end-begin, syscall.MADV_DONTNEED); errno != 0 {
			errs = append(errs, fmt.Errorf("giving pages of the program back: %w", errno))
		}
	}
	return errors.Join(append(errs, lines.Err())...)
}

// programMapping returns the addresses of a line of /proc/self/maps if it is of the
// program and cannot be written to.
func programMapping(line, program string) (begin, end uintptr, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 6 || fields[5] != program || !strings.HasPrefix(fields[1], "r") || strings.Contains(fields[1], "w") {
		return 0, 0, false
	}
	n, err := fmt.Sscanf(fields[0], "%x-%x", &begin, &end)
	return begin, end, err == nil && n == 2 && begin < end
}
