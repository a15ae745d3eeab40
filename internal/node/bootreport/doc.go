// SPDX-License-Identifier: Apache-2.0

// Package bootreport is the report of a machine that boots, for its host: the step that it waits for, and the failure
// that keeps it from becoming a node. It is a file on the machine's disk, since a machine that fails has no credential
// for anything else.
//
// Root on the machine writes the file, so a report is read within bounds and is for people. A machine that says it
// failed is not Ready; a machine that says nothing is not Ready because of that.
package bootreport

import (
	"slices"
	"time"
)

// Path is where the file is, below the root of a machine's disk.
const Path = "var/lib/muster/boot-report"

// Files that the host writes on a machine's disk for a drill, below its root. The agent removes both when the machine boots.
const (
	// HeldPrefix and the name of a program are a file that has the agent keep the program from running.
	HeldPrefix = "var/lib/muster/held-"
	// FillerPath is a file that takes all space of the disk.
	FillerPath = "var/lib/muster/drill-disk-full"
)

// Size of the file in bytes. It always has this size: a report replaces the one before in place, so that a full disk
// can be reported.
const Size = 4096

// MaxMessage is the length of a message in bytes; longer ones are cut off.
const MaxMessage = 1500

// The reasons of reports. They are reasons of a Machine's condition Ready, too.
const (
	// UserDataSlow is a script of the user data that has been running for a while, and still does.
	UserDataSlow = "UserDataSlow"
	// UserDataFailed is a part of the user data that failed, or that nothing here carries out.
	UserDataFailed = "UserDataFailed"
	// NodeConfigRefused is configuration that no node can be made of.
	NodeConfigRefused = "NodeConfigRefused"
	// DiskFull is a disk without space.
	DiskFull = "DiskFull"
	// InotifyExhausted is a host that has no inotify instances left.
	InotifyExhausted = "InotifyExhausted"
	// ProgramFails is a program of the node, such as the kubelet, that ends again and again.
	ProgramFails = "ProgramFails"
	// NotRegistered is a kubelet that runs and does not get its node registered.
	NotRegistered = "NotRegistered"
	// BootFailed is everything else.
	BootFailed = "BootFailed"
)

// Warmed is the reason of a report that is not a failure: the machine has booted and waits in the warm pool of its node group.
const Warmed = "Warmed"

// reasons are those of failures.
var reasons = []string{UserDataSlow, UserDataFailed, NodeConfigRefused, DiskFull, InotifyExhausted, ProgramFails, NotRegistered, BootFailed}

// IsReason reports whether a condition with this reason repeats a report.
func IsReason(reason string) bool { return slices.Contains(reasons, reason) }

// Report is one thing that keeps a machine from becoming a node.
type Report struct {
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Since   time.Time `json:"since"`
}
