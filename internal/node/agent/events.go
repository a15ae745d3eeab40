// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"muster.dev/muster/internal/node/nodecerts"
)

// event is what the cluster is told about the node, where an operator looks: kubectl describe node.
type event struct {
	Reason, Text string
	Warning      bool
	At           time.Time
}

// maxEvents is how many wait while they cannot be told, as while the node's certificate has expired. The oldest go
// first.
const maxEvents = 32

// eventQueue keeps events until they are told.
type eventQueue struct {
	log     *slog.Logger
	waiting []event
	said    string // in the log, of why they are not
}

func (q *eventQueue) add(e event) {
	q.waiting = append(q.waiting, e)
	if len(q.waiting) > maxEvents {
		q.waiting = q.waiting[len(q.waiting)-maxEvents:]
	}
}

// flush tells all, or tries again at the next look.
func (q *eventQueue) flush(ctx context.Context, post func(context.Context, []event) error) {
	if len(q.waiting) == 0 {
		return
	}
	if err := post(ctx, q.waiting); err != nil {
		if text := err.Error(); text != q.said {
			q.said = text
			q.log.Info("the cluster cannot be told what happened to the node; it is tried again", "error", err)
		}
		return
	}
	q.waiting, q.said = nil, ""
}

// reasonOf is a code as the reasons of Events are written.
func reasonOf(code string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(code, "-") {
		b.WriteString(strings.ToUpper(part[:min(1, len(part))]) + part[min(1, len(part)):])
	}
	return b.String()
}

// sentence is a notice in one line. The cluster takes 1024 bytes (pkg/apis/core/validation).
func sentence(n Notice) string {
	const most = 1000
	text := n.Text
	if n.Fix != "" {
		text += ". Fix: " + n.Fix
	}
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// postTime is how long the API server may take over all of it.
const postTime = 10 * time.Second

// postEvents tells the cluster by the kubelet's own credential, as the kubelet tells its own.
func (w *watcher) postEvents(ctx context.Context, events []event) error {
	ctx, cancel := context.WithTimeout(ctx, postTime)
	defer cancel()
	config, node, err := w.connection(ctx)
	if err != nil {
		return err
	}
	return createEvents(ctx, config, node, events)
}

// createEvents creates Events of a node.
func createEvents(ctx context.Context, config *rest.Config, node string, events []event) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for Events: %w", err)
	}
	for _, e := range events {
		if _, err := client.CoreV1().Events(metav1.NamespaceDefault).Create(ctx, e.object(node), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating an Event: %w", err)
		}
	}
	return nil
}

func (w *watcher) connection(ctx context.Context) (*rest.Config, string, error) {
	if w.Token == nil || !nodecerts.ByRole(w.Kubeconfig) {
		return nodecerts.Connection(ctx, w.Kubeconfig, w.CertDir, w.now())
	}
	token, err := w.Token(ctx)
	if err != nil {
		return nil, "", err
	}
	return nodecerts.TokenConnection(ctx, w.Kubeconfig, token)
}

// object is an Event of a Node: kubelets give its name as its UID, too, which is what kubectl describe looks for.
func (e event) object(node string) *corev1.Event {
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	at := metav1.NewTime(e.At)
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: node + ".", Namespace: metav1.NamespaceDefault},
		InvolvedObject: corev1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: node, UID: types.UID(node)},
		Reason:         e.Reason, Message: e.Text, Type: kind, Count: 1, FirstTimestamp: at, LastTimestamp: at,
		Source: corev1.EventSource{Component: "muster-node", Host: node}, ReportingController: "muster-node", ReportingInstance: node,
	}
}
