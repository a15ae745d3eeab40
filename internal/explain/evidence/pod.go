// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
)

const (
	// podPatience is how long a pod may be on its way: its image is pulled meanwhile.
	podPatience = 2 * time.Minute
	// eventAge is how old an Event may be to say how things are now: an API server keeps Events for an hour
	// (kube-apiserver --event-ttl).
	eventAge = time.Hour
)

// Place is where an object of a cluster is.
type Place struct {
	Cluster         string // spec.name of the cluster, or how people call it
	Namespace, Name string
}

func (p Place) String() string { return p.Namespace + "/" + p.Name }

// names fill in the fixes of the object's causes. $NAME is as kubectl takes it.
func (p Place) names() map[string]string {
	return map[string]string{"$NAME": p.Name + " --namespace " + p.Namespace, "$CLUSTER": p.Cluster}
}

// Pod reads a pod with its Events, and returns its facts. The error is the API server's if the pod cannot be read.
func Pod(ctx context.Context, api client.Reader, at Place, now time.Time) (diagnosis.Facts, error) {
	var pod corev1.Pod
	if err := readOne(ctx, api, at, &pod); err != nil {
		return diagnosis.Facts{}, err
	}
	f := diagnosis.Facts{Kind: "pod", Name: at.String(), Names: at.names(), Since: pod.CreationTimestamp.Time, Patience: podPatience, Healthy: pod.Status.Phase == corev1.PodSucceeded}
	e := diagnosis.Evidence{Source: cause.FromPod, Object: "pod/" + at.String(), Look: "kubectl describe pod " + at.names()["$NAME"]}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.LastTransitionTime.After(f.Since) {
			f.Since = c.LastTransitionTime.Time
		}
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			f.Healthy = true
		}
		if c.Status == corev1.ConditionFalse {
			own := e
			own.Time, own.Code, own.Text = c.LastTransitionTime.UTC(), string(c.Type)+"/"+c.Reason, bounded(c.Message)
			own.Trouble = c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable
			f.Evidence = append(f.Evidence, own)
		}
	}
	if f.Healthy { // its other conditions and its Events are of earlier
		f.Evidence = nil
		return f, nil
	}
	for _, status := range append(append([]corev1.ContainerStatus{}, pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...) {
		f.Evidence = append(f.Evidence, ofContainer(e, &status)...)
	}
	addEvents(ctx, &f, api, "Pod", at, now)
	if !slices.ContainsFunc(f.Evidence, waitsForImage) {
		f.Evidence = slices.DeleteFunc(f.Evidence, func(e diagnosis.Evidence) bool { return e.Source == cause.FromEvent && e.Code == notLoaded })
	}
	return f, nil
}

// notLoaded is the reason of package podnotice's Event about an image, which stays for an hour after the image came.
const notLoaded = "ImageNotLoaded"

// waitsForImage reports whether a container waits for its image (kubernetes, pkg/kubelet/images/types.go).
func waitsForImage(e diagnosis.Evidence) bool {
	return e.Source == cause.FromPod && (strings.HasPrefix(e.Code, "Waiting/ErrImage") || strings.HasPrefix(e.Code, "Waiting/ImagePull"))
}

// keepsEnding is how often a container was started again that keeps ending. Its status is CrashLoopBackOff for a part of
// the time only: until the kubelet looks at the pod again it says how the container ended.
const keepsEnding = 3

// beginning are the reasons of a container that waits because its pod begins (kubernetes, pkg/kubelet/kubelet_pods.go).
var beginning = map[string]bool{"ContainerCreating": true, "PodInitializing": true, "": true}

// ofContainer returns why a container waits, and how it ended last.
func ofContainer(e diagnosis.Evidence, status *corev1.ContainerStatus) []diagnosis.Evidence {
	var evidence []diagnosis.Evidence
	if w := status.State.Waiting; w != nil {
		e.Code, e.Text, e.Trouble = "Waiting/"+w.Reason, bounded(fmt.Sprintf("container %s: %s", status.Name, w.Message)), !beginning[w.Reason]
		evidence = append(evidence, e)
	}
	again := status.RestartCount >= keepsEnding
	if t := status.State.Terminated; t != nil && t.ExitCode != 0 && again {
		own := e
		own.Time, own.Code, own.Trouble = t.FinishedAt.UTC(), "Restarts/Ended", true
		own.Text = fmt.Sprintf("container %s ended with exit code %d, and was started again %d times before", status.Name, t.ExitCode, status.RestartCount)
		evidence = append(evidence, own)
	}
	for _, t := range []*corev1.ContainerStateTerminated{status.State.Terminated, status.LastTerminationState.Terminated} {
		if t == nil || t.ExitCode == 0 || status.State.Running != nil { // it runs again: how it ended is over
			continue
		}
		e.Time, e.Code, e.Trouble = t.FinishedAt.UTC(), "Terminated/"+t.Reason, status.State.Terminated == t && !again
		e.Text = bounded(fmt.Sprintf("container %s ended with exit code %d: %s", status.Name, t.ExitCode, t.Message))
		evidence = append(evidence, e)
	}
	return evidence
}

// readOne reads one object.
func readOne(ctx context.Context, api client.Reader, at Place, into client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	return api.Get(ctx, client.ObjectKey{Namespace: at.Namespace, Name: at.Name}, into)
}

// addEvents adds the Events of the last hour about an object that is not as it should be: of each reason and writer the newest. An
// Event tells what was, so that it is no trouble by itself.
func addEvents(ctx context.Context, f *diagnosis.Facts, api client.Reader, kind string, at Place, now time.Time) {
	var events corev1.EventList
	err := read(ctx, api, &events, client.InNamespace(at.Namespace), client.MatchingFields{"involvedObject.name": at.Name})
	if err != nil {
		f.Unseen = append(f.Unseen, diagnosis.Unseen{What: "the Events about " + at.String(), Why: err.Error()})
		return
	}
	newest := map[string]corev1.Event{}
	for _, e := range events.Items {
		when := lastSeen(&e)
		if e.InvolvedObject.Kind != kind || now.Sub(when) > eventAge {
			continue
		}
		by := e.Reason + " " + cmp.Or(e.ReportingController, e.Source.Component) // several schedulers have one reason
		if before, ok := newest[by]; !ok || lastSeen(&before).Before(when) {
			newest[by] = e
		}
	}
	for _, by := range slices.Sorted(maps.Keys(newest)) {
		e := newest[by]
		f.Evidence = append(f.Evidence, diagnosis.Evidence{
			Source: cause.FromEvent, Object: f.Kind + "/" + at.String(), Look: "kubectl get events --namespace " + at.Namespace + " --field-selector involvedObject.name=" + at.Name,
			Time: since(&e).UTC(), Code: e.Reason, Text: bounded(e.Message),
		})
	}
}

// lastSeen is when an Event was seen last, by whichever API wrote it.
func lastSeen(e *corev1.Event) time.Time {
	for _, at := range []time.Time{seriesTime(e), e.LastTimestamp.Time, e.EventTime.Time} {
		if !at.IsZero() {
			return at
		}
	}
	return e.CreationTimestamp.Time
}

// since is when an Event was seen first: it is written again and again while it is so.
func since(e *corev1.Event) time.Time {
	for _, at := range []time.Time{e.FirstTimestamp.Time, e.EventTime.Time} {
		if !at.IsZero() {
			return at
		}
	}
	return lastSeen(e)
}

func seriesTime(e *corev1.Event) time.Time {
	if e.Series == nil {
		return time.Time{}
	}
	return e.Series.LastObservedTime.Time
}
