// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/node/bootreport"
)

// report tells the host what keeps this machine from becoming a node.
func (a *agent) report(reason, message string) {
	if a.reports == nil {
		return
	}
	if err := a.reports.Set(bootreport.Report{Reason: reason, Message: message, Since: time.Now()}); err != nil {
		a.log.Warn("the host cannot be told what keeps this machine from becoming a node", "reason", reason, "error", err)
	}
}

// over ends a report with one of these reasons, and any if there are none.
func (a *agent) over(reasons ...string) {
	if a.reports == nil {
		return
	}
	if err := a.reports.Clear(reasons...); err != nil {
		a.log.Warn("the host cannot be told that this is over", "error", err)
	}
}

// userDataFailure is that parts of the user data failed, a line each.
type userDataFailure []string

func (f userDataFailure) Error() string { return strings.Join(f, "; ") }

// failure says why a machine cannot become a node, as a reason for its host and as a sentence for its log.
func failure(err error) (reason, sentence string) {
	_, failed := errors.AsType[userDataFailure](err)
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return bootreport.DiskFull, "the disk is full; trying again"
	case failed:
		return bootreport.UserDataFailed, "user data failed; this machine does not become a node"
	}
	return bootreport.NodeConfigRefused, "user data cannot be used; waiting for other"
}
