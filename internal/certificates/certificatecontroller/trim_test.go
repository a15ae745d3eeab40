// SPDX-License-Identifier: Apache-2.0

package certificatecontroller

import (
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"
)

// The pages come back when they are used, which the rest of this test does.
func TestTrim(t *testing.T) {
	before := resident(t)
	if err := dropProgram(); err != nil {
		t.Fatal(err)
	}
	if after := resident(t); after >= before {
		t.Errorf("%d KiB of files are resident, and were %d", after, before)
	}
	trim(slog.New(slog.DiscardHandler))
}

// resident is how much of files is mapped and in memory.
func resident(t *testing.T) (kib int) {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "RssFile:" && fields[0] != "RssShmem:" { // where tests lie in memory, so does their program
			continue
		}
		n, err := strconv.Atoi(fields[1])
		if err != nil {
			t.Fatal(err)
		}
		kib += n
	}
	return kib
}
