// SPDX-License-Identifier: Apache-2.0

// Package apiservermemory says how the kube-apiserver of a cluster is held to an amount of memory: as the condition
// APIServerMemoryLimited, as notes of the status, and as Events of the Cluster, one for each time that the kernel ended
// the process at its limit. It sets no limit: package supervise does.
package apiservermemory

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
)

// look is the interval at which the Events are brought up to date.
const look = time.Second

// Reasons of the condition APIServerMemoryLimited, and of Events.
const (
	reasonLimited      = "Limited"
	reasonUnlimited    = "NotLimited"
	reasonInUse        = "LimitInUse"
	reasonEndedAtLimit = "EndedAtLimit"
	reasonEvent        = "APIServerMemoryLimit"
)

// Of describes how the API servers among the components of a cluster are held to their memory: the first one whose limit
// is not in force, or the first one with a limit, with the ends of all.
func Of(components []runner.Status) runner.Memory {
	var of runner.Memory
	ended, last := 0, runner.MemoryEnd{}
	for _, c := range components {
		if !component.IsAPIServer(c.Name) {
			continue
		}
		if of.Problem == "" && (of.Limit == 0 || c.Memory.Problem != "") {
			of = c.Memory
		}
		ended += c.Memory.Ended
		if c.Memory.Last.At.After(last.At) {
			last = c.Memory.Last
		}
	}
	of.Ended, of.Last = ended, last
	return of
}

// Condition is the condition APIServerMemoryLimited; false before the process has been started or taken over.
func Condition(m runner.Memory) (metav1.Condition, bool) {
	is := func(status metav1.ConditionStatus, reason, message string) (metav1.Condition, bool) {
		return metav1.Condition{Type: v1alpha1.ConditionAPIServerMemoryLimited, Status: status, Reason: reason, Message: message}, true
	}
	switch {
	case m.Problem != "" && m.Limit == 0:
		return is(metav1.ConditionFalse, reasonUnlimited, "kube-apiserver runs without a memory limit: "+m.Problem)
	case m.Problem != "":
		return is(metav1.ConditionFalse, reasonInUse, inUseMessage(m))
	case m.Limit == 0:
		return metav1.Condition{}, false
	case m.Ended > 0:
		return is(metav1.ConditionTrue, reasonEndedAtLimit, endedMessage(m))
	}
	return is(metav1.ConditionTrue, reasonLimited, fmt.Sprintf("kube-apiserver is held to %d MiB of memory", m.Limit>>20))
}

func inUseMessage(m runner.Memory) string {
	return fmt.Sprintf("spec.apiServer.memoryLimit: %s until kube-apiserver is started again", m.Problem)
}

func endedMessage(m runner.Memory) string {
	text := fmt.Sprintf("the kernel ended kube-apiserver at its memory limit of %d MiB (it used %d MiB) at %s", m.Last.Limit>>20, m.Last.Used>>20, m.Last.At.UTC().Format(time.RFC3339))
	if m.Ended > 1 {
		text += fmt.Sprintf(", the last of %d times", m.Ended)
	}
	return text + ": if the cluster needs more, raise spec.apiServer.memoryLimit of the Cluster"
}

// Notes are what an operator should know of the memory of a kube-apiserver that has a limit.
func Notes(m runner.Memory) []string {
	var notes []string
	if m.Ended > 0 {
		notes = append(notes, endedMessage(m))
	}
	if m.Problem != "" && m.Limit != 0 {
		notes = append(notes, inUseMessage(m))
	}
	return notes
}

// Notice is what the Events of a Cluster said last about its kube-apiserver. Its zero value has said nothing.
type Notice struct {
	ended   time.Time
	problem string
}

// due are the messages of the Events that are due: one for each time that the API server was ended, and one for each
// limit that is not in force while another one is. Why a host has no limits at all `muster status` says.
func (n *Notice) due(m runner.Memory) []string {
	var messages []string
	if m.Ended > 0 && !m.Last.At.Equal(n.ended) {
		n.ended = m.Last.At
		messages = append(messages, endedMessage(m))
	}
	if m.Limit != 0 && m.Problem != n.problem {
		n.problem = m.Problem
		if m.Problem != "" {
			messages = append(messages, inUseMessage(m))
		}
	}
	return messages
}

// Tell records Events of a Cluster, by its namespace in the management plane, about the memory of its kube-apiserver
// until the context ends.
func (n *Notice) Tell(ctx context.Context, plane manager.Manager, namespace string, components func() []runner.Status) {
	recorder := plane.GetEventRecorder("muster")
	ticks := time.NewTicker(look)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		before := *n
		messages := n.due(Of(components()))
		if len(messages) == 0 {
			continue
		}
		cluster := &v1alpha1.Cluster{}
		if err := plane.GetAPIReader().Get(ctx, client.ObjectKey{Namespace: namespace, Name: namespace}, cluster); err != nil {
			*n = before // the Event is due again when the management plane answers
			continue
		}
		for _, message := range messages {
			recorder.Eventf(cluster, nil, corev1.EventTypeWarning, reasonEvent, "Limit", "%s", message)
		}
	}
}
