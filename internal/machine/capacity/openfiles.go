// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"strconv"
)

// openFilesOfProcess is how many files a process of a machine may open that does not ask for more.
const openFilesOfProcess = 65536

// FewOpenFiles returns one line for people if so many processes of local machines can open all files that a host has
// for all its programs: with the file that allows more for good. fs.file-max of a kernel is a tenth of the memory by
// default, and systemd raises it to the most there is: the memory that open files take is bounded with that of the
// machine. Empty if there are enough, or if limit, the value of fs.file-max, is not a number.
func FewOpenFiles(limit string, processes int64) string {
	allowed, err := strconv.ParseUint(limit, 10, 64)
	if err != nil || allowed > uint64(max(processes, 0))*openFilesOfProcess {
		return ""
	}
	return fmt.Sprintf("fs.file-max is %d on this host, and %d processes of local machines may open more files, after which none is left for programs that are not root's: "+
		"add the line `fs.file-max = 9223372036854775807`, which systemd sets, to /etc/sysctl.d/60-muster.conf, then run `sysctl --system`", allowed, processes)
}
