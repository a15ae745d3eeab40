// SPDX-License-Identifier: Apache-2.0

// Package drill decides about drills of machines: a trouble that somebody has a machine have for a while, to see what
// comes of it. It says which step is next, what the machine has while a drill goes on, and what happens at its end.
//
// What happens if
//
//	the service is killed     the next one takes the same step again: each can be repeated
//	the spec drops a drill    it ends at once, and what it announced does not happen
//	another drill comes       the one before ends first
package drill

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"muster.dev/muster/api/v1alpha1"
)

// Effect is what a machine has for as long as a drill goes on. The zero value is a machine without a drill.
type Effect struct {
	// Leaves are texts of instance metadata, by their path below latest/meta-data/.
	Leaves map[string]string `json:"leaves,omitempty"`
	// DiskFull leaves no space on the machine's disk.
	DiskFull bool `json:"diskFull,omitempty"`
	// NoNetwork drops every packet from the machine and to it.
	NoNetwork bool `json:"noNetwork,omitempty"`
	// Held is the program that does not run, such as kubelet; empty for none.
	Held string `json:"held,omitempty"`
}

// Held are the programs that an effect can keep from running.
func Held() []string { return []string{"kubelet", "containerd"} }

// Step is what is done about a drill next.
type Step int

// The steps.
const (
	Nothing Step = iota // there is no drill, or it has ended
	Begin               // note that it goes on
	Keep                // make sure of its effect
	Happen              // do what it announced, and end it
	End                 // take its effect back
)

// Next returns the next step of a machine's drill at a moment.
func Next(spec *v1alpha1.MachineDrill, status *v1alpha1.MachineDrillStatus, now time.Time) Step {
	goes := status != nil && status.EndedAt == nil
	same := spec != nil && status != nil && status.Kind == spec.Kind && status.Began.Equal(&spec.Began)
	switch {
	case goes && !same:
		return End
	case goes && now.Before(spec.Ends.Time):
		return Keep
	case goes:
		return Happen
	case spec == nil, same:
		return Nothing
	}
	return Begin
}

// Of returns what a machine has while a drill goes on.
func Of(d v1alpha1.MachineDrill, machine string) Effect {
	switch d.Kind {
	case v1alpha1.DrillSpotInterruption:
		at := d.Ends.UTC().Format(time.RFC3339)
		return Effect{Leaves: map[string]string{
			"spot/instance-action": text(struct {
				Action string `json:"action"`
				Time   string `json:"time"`
			}{"terminate", at}),
			"spot/termination-time": at,
		}}
	case v1alpha1.DrillRebalance:
		return Effect{Leaves: map[string]string{"events/recommendations/rebalance": text(struct {
			NoticeTime string `json:"noticeTime"`
		}{d.Began.UTC().Format(time.RFC3339)})}}
	case v1alpha1.DrillMaintenance:
		const form = "2 Jan 2006 15:04:05 GMT"
		return Effect{Leaves: map[string]string{"events/maintenance/scheduled": text([]event{{
			Code: "system-reboot", Description: "scheduled reboot", EventID: eventID(machine, d.Began.Time),
			NotBefore: d.Ends.UTC().Format(form), NotAfter: d.Ends.UTC().Format(form), State: "active",
		}})}}
	case v1alpha1.DrillDiskFull:
		return Effect{DiskFull: true}
	case v1alpha1.DrillNoNetwork:
		return Effect{NoNetwork: true}
	case v1alpha1.DrillKubelet, v1alpha1.DrillContainerd:
		return Effect{Held: string(d.Kind)}
	case v1alpha1.DrillStop, v1alpha1.DrillReboot: // package power and the machine's controller do it
	}
	return Effect{}
}

// event is one of EC2's scheduled events, as instance metadata has it.
type event struct {
	NotBefore, Code, Description string
	EventID                      string `json:"EventId"`
	NotAfter, State              string
}

// eventID is the id of the event that a drill of a machine announces. Each drill has another one: AWS's node termination
// handler heeds an id once.
func eventID(machine string, began time.Time) string {
	const digits = 17 // as EC2's have
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", machine, began.UnixMicro()))
	return "instance-event-" + hex.EncodeToString(sum[:])[:digits]
}

func text(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value) // plain values, which are always written
	}
	return string(raw)
}
