// SPDX-License-Identifier: Apache-2.0

package certificatecontroller

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
)

// trim gives memory back that only the start needed: much of the program is types of APIs that register themselves and
// are never used. Used pages come back, from the page cache, with the next access.
func trim(logger *slog.Logger) {
	debug.FreeOSMemory()
	if err := dropProgram(); err != nil { // it then stays a few MiB larger
		logger.Debug("memory of the start not given back", "error", err)
	}
}

// dropProgram forgets the pages of this program's file that nobody can have changed.
func dropProgram() error {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("finding where this program is: %w", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(maps))
	for lines.Scan() {
		var begin, end uintptr
		var access string
		line := lines.Text()
		if _, err := fmt.Sscanf(line, "%x-%x %s", &begin, &end, &access); err != nil || !strings.HasSuffix(line, " "+self) {
			continue
		}
		if access != "r-xp" && access != "r--p" { // written pages are not in the file
			continue
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, begin, end-begin, unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("forgetting pages: %w", errno)
		}
	}
	return nil
}
