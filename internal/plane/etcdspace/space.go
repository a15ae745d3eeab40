// SPDX-License-Identifier: Apache-2.0

// Package etcdspace knows how much of its quota the etcd of a cluster takes, and gives space back. An etcd whose file
// reaches its quota raises the alarm NOSPACE, and takes no write but deletions until somebody disarms the alarm. Its file
// never shrinks by itself: what was deleted is room for what comes, inside of the file.
//
// [Upkeep.Free] compacts the history where there is the alarm, defragments where that is worth the seconds in which etcd
// answers nobody, and disarms the alarm. It may be done again at any moment, also after it was killed in the middle.
package etcdspace

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
)

// worthBytes is how much a file must have that is not in use for a defragmentation to be worth its pause; also more than
// half of itself, unless it is nearly full.
const worthBytes = 200 << 20

// perSecond is how many bytes in use a defragmentation copies in a second, at least: 14 MiB took 20 ms on two
// processors and an SSD.
const perSecond = 50 << 20

// nearly is the part of the quota, in percent, from which on a file is called nearly full.
const nearly = 80

// Space is what an etcd says of its file, in bytes.
type Space struct {
	// Size is that of the file, InUse is what of it holds objects and their history, and Quota is the most that the file
	// may have.
	Size  int64 `json:"sizeBytes"`
	InUse int64 `json:"inUseBytes"`
	Quota int64 `json:"quotaBytes"`
	// NoSpace says that the alarm is raised: etcd takes deletions alone. DiskFull says that this is because of the disk of
	// the state directory, not of the quota.
	NoSpace  bool `json:"noSpace"`
	DiskFull bool `json:"diskFull,omitempty"`
}

// Worth reports whether a defragmentation is worth its pause.
func (s Space) Worth() bool {
	unused := s.Size - s.InUse
	return unused > worthBytes && (unused > s.Size/2 || s.full())
}

// full reports whether the file is nearly full.
func (s Space) full() bool { return s.Size*100 >= s.Quota*nearly }

// reached reports whether the file has no room for a write below its quota. The largest that an API server makes has
// less than 2 MiB.
func (s Space) reached() bool { return s.Size+2<<20 > s.Quota }

// Pause is how long a defragmentation may keep etcd, and so the API, from answering.
func (s Space) Pause() time.Duration {
	return time.Second + time.Duration(float64(s.InUse)/perSecond*float64(time.Second))
}

func (s Space) String() string {
	return fmt.Sprintf("its file has %d MiB, %d MiB of them in use, of a quota of %d MiB", s.Size>>20, s.InUse>>20, s.Quota>>20)
}

// Forecast says what there is, and what giving space back would take.
func (s Space) Forecast() string {
	switch {
	case s.NoSpace:
		return fmt.Sprintf("%s; the alarm NOSPACE is raised. Compacting, defragmenting and disarming it keep etcd and the API from answering for up to %s", s, s.Pause().Round(time.Second))
	case s.Worth():
		return fmt.Sprintf("%s. Defragmenting it keeps etcd and the API from answering for up to %s", s, s.Pause().Round(time.Second))
	}
	return fmt.Sprintf("%s. A defragmentation is not worth its pause: that takes more than %d MiB that are not in use, and more than half of the file unless it has %d %% of its quota", s, worthBytes>>20, nearly)
}

// Reasons of the condition EtcdSpace.
const (
	reasonEnough  = "Enough"
	reasonNearly  = "NearlyFull"
	reasonNoSpace = "NoSpace"
)

// Problem is what an operator is told of the alarm of a cluster's etcd.
func (s Space) Problem() string { return s.problem("muster defragment") }

// ManagementProblem is what an operator is told of the alarm of the management plane's etcd.
func (s Space) ManagementProblem() string { return s.problem("muster defragment --management") }

func (s Space) problem(command string) string {
	if s.DiskFull {
		return "etcd takes no write but deletions: the disk of the state directory is full. Free space there: writes are taken again by themselves"
	}
	return "etcd takes no write but deletions: its file has reached the quota, and the alarm NOSPACE is raised: " + s.String() + ". Free space by `" + command + "`"
}

// Condition is the condition EtcdSpace; false while the quota is not known. Its message changes by whole tenths of the
// quota.
func (s Space) Condition() (metav1.Condition, bool) {
	if s.Quota <= 0 {
		return metav1.Condition{}, false
	}
	tenth := func(bytes int64) int64 { return (bytes*10 + s.Quota - 1) / s.Quota * 10 }
	text := fmt.Sprintf("the file of etcd has at most %d %% of its quota of %d MiB, and at most %d %% are in use", tenth(s.Size), s.Quota>>20, tenth(s.InUse))
	c := metav1.Condition{Type: v1alpha1.ConditionEtcdSpace, Status: metav1.ConditionTrue, Reason: reasonEnough, Message: text}
	switch {
	case s.NoSpace:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reasonNoSpace, s.Problem()
	case s.full():
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reasonNearly, text+": delete objects, or give space back by `muster defragment`"
	}
	return c, true
}
