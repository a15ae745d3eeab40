// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"path/filepath"
	"strconv"
)

// OOMScore says how soon a process is ended when memory runs out, before or after others: from 1000, first, by way of
// 0, by its memory alone, to -1000, never (proc_pid_oom_score_adj(5)). Processes that it starts later inherit the
// score. To lower the score takes CAP_SYS_RESOURCE: the error is [fs.ErrPermission] without.
func OOMScore(pid, score int) error {
	if err := write(filepath.Join("/proc", strconv.Itoa(pid), "oom_score_adj"), strconv.Itoa(score)); err != nil {
		return fmt.Errorf("saying how soon process %d is ended when memory runs out: %w", pid, err)
	}
	return nil
}
