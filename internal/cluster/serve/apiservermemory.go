// SPDX-License-Identifier: Apache-2.0

package serve

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
	"muster.dev/muster/internal/plane/supervise"
)

// memoryLook is how often it is looked at whether an API server was ended at its memory limit, for an Event.
const memoryLook = time.Second

// Reasons of the condition APIServerMemoryLimited, and of Events.
const (
	reasonMemoryLimited    = "Limited"
	reasonMemoryUnlimited  = "NotLimited"
	reasonMemoryInUse      = "LimitInUse"
	reasonMemoryEndedAtIt  = "EndedAtLimit"
	reasonMemoryLimitEvent = "APIServerMemoryLimit"
)

// apiServerMemory describes how the API server is held to its memory.
func apiServerMemory(components []supervise.Status) supervise.Memory {
	for _, c := range components {
		if c.Name == component.APIServer {
			return c.Memory
		}
	}
	return supervise.Memory{}
}

// memoryCondition is the condition APIServerMemoryLimited; false before the process has been started or taken over.
func memoryCondition(m supervise.Memory) (metav1.Condition, bool) {
	is := func(status metav1.ConditionStatus, reason, message string) (metav1.Condition, bool) {
		return metav1.Condition{Type: v1alpha1.ConditionAPIServerMemoryLimited, Status: status, Reason: reason, Message: message}, true
	}
	switch {
	case m.Problem != "" && m.Limit == 0:
		return is(metav1.ConditionFalse, reasonMemoryUnlimited, "kube-apiserver runs without a memory limit: "+m.Problem)
	case m.Problem != "":
		return is(metav1.ConditionFalse, reasonMemoryInUse, inUseMessage(m))
	case m.Limit == 0:
		return metav1.Condition{}, false
	case m.Ended > 0:
		return is(metav1.ConditionTrue, reasonMemoryEndedAtIt, endedMessage(m))
	}
	return is(metav1.ConditionTrue, reasonMemoryLimited, fmt.Sprintf("kube-apiserver is held to %d MiB of memory", m.Limit>>20))
}

func inUseMessage(m supervise.Memory) string {
	return fmt.Sprintf("spec.apiServer.memoryLimit: %s until kube-apiserver is started again", m.Problem)
}

func endedMessage(m supervise.Memory) string {
	text := fmt.Sprintf("the kernel ended kube-apiserver at its memory limit of %d MiB (it used %d MiB) at %s", m.Last.Limit>>20, m.Last.Used>>20, m.Last.At.UTC().Format(time.RFC3339))
	if m.Ended > 1 {
		text += fmt.Sprintf(", the last of %d times", m.Ended)
	}
	return text + ": if the cluster needs more, raise spec.apiServer.memoryLimit of the Cluster"
}

// memoryNotes are what an operator should know of the memory of an API server that has a limit.
func memoryNotes(m supervise.Memory) []string {
	var notes []string
	if m.Ended > 0 {
		notes = append(notes, endedMessage(m))
	}
	if m.Problem != "" && m.Limit != 0 {
		notes = append(notes, inUseMessage(m))
	}
	return notes
}

// memoryNotice is what people were told last.
type memoryNotice struct {
	ended   time.Time
	problem string
}

// due are the messages of the Events that are due: one for each time that the API server was ended, and one for each limit that is not in force
// while another one is. Why a host has no limits at all `muster status` says.
func (n *memoryNotice) due(m supervise.Memory) []string {
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

// tellMemory records Events of the Cluster about the memory of its API server, until the context ends.
func (h *hosted) tellMemory(ctx context.Context, plane manager.Manager) {
	recorder := plane.GetEventRecorder("muster")
	namespace := h.dir.Namespace()
	for pause(ctx, memoryLook) == nil {
		before := h.memoryTold
		messages := h.memoryTold.due(apiServerMemory(h.components()))
		if len(messages) == 0 {
			continue
		}
		cluster := &v1alpha1.Cluster{}
		if err := plane.GetAPIReader().Get(ctx, client.ObjectKey{Namespace: namespace, Name: namespace}, cluster); err != nil {
			h.memoryTold = before // it is told when the management plane answers
			continue
		}
		for _, message := range messages {
			recorder.Eventf(cluster, nil, corev1.EventTypeWarning, reasonMemoryLimitEvent, "Limit", "%s", message)
		}
	}
}

// unlimitedMemory is why API servers run without a memory limit; empty if all have one.
func unlimitedMemory(clusters []ClusterStatus) string {
	for _, c := range clusters {
		if m := apiServerMemory(c.Components); m.Limit == 0 && m.Problem != "" {
			return m.Problem
		}
	}
	return ""
}
