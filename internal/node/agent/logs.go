// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/internal/node/fluentbit"
	"muster.dev/muster/internal/node/logrouter"
	"muster.dev/muster/internal/node/nodecerts"
	"muster.dev/muster/internal/node/render"
)

// routeLogs is the log router of a machine of Fargate, if the machine has one. The channel is closed when the router has ended, after
// the context.
func routeLogs(ctx context.Context, a *agent) <-chan struct{} {
	ended := make(chan struct{})
	told := a.current().Logging
	if told.Output == "" {
		close(ended)
		return ended
	}
	region := a.self().Region
	rules, err := fluentbit.Read(fluentbit.Text{Output: told.Output, Filters: told.Filters, Parsers: told.Parsers}, region)
	if err != nil {
		a.log.Error("logs of containers go nowhere: the log router's configuration is not valid", "error", err)
		close(ended)
		return ended
	}
	router, err := logrouter.New(logrouter.Config{
		Rules: rules, Dir: logrouter.Dir, Record: filepath.Join(a.config.DataDir, "log-router.json"), Log: a.log,
		Sink: &logrouter.CloudWatch{Region: region, Authorities: accountCA, Role: a.metadata.RoleCredentials},
		Pods: (&knownPods{find: func(namespace, name string) (*corev1.Pod, error) { return podOf(ctx, a, namespace, name) }, now: time.Now}).get,
	})
	if err != nil {
		a.log.Error("logs of containers go nowhere", "error", err)
		close(ended)
		return ended
	}
	a.log.Info("logs of containers go to CloudWatch Logs", "outputs", len(rules.Outputs))
	go func() {
		defer close(ended)
		router.Run(ctx)
	}()
	return ended
}

// podOf asks the API server for a pod, as the node of a machine.
func podOf(ctx context.Context, a *agent, namespace, name string) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, postTime)
	defer cancel()
	_, token, err := nodeCredential(ctx, a.current().Cluster.Name, a.self().Region)
	if err != nil {
		return nil, err
	}
	config, _, err := nodecerts.TokenConnection(ctx, render.PathKubeconfig, token)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for pods: %w", err)
	}
	return client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
}

const (
	// podTime is how long what is known of a pod counts (Kube_Meta_Cache_TTL, by default on EKS).
	podTime = 30 * time.Minute
	// podRetry is the pause before a pod is asked for again that was not found.
	podRetry = 10 * time.Second
)

// knownPods remembers pods. A machine of Fargate has one.
type knownPods struct {
	find func(namespace, name string) (*corev1.Pod, error)
	now  func() time.Time

	mu    sync.Mutex
	known map[string]knownPod
}

type knownPod struct {
	pod   fluentbit.Pod
	found bool
	until time.Time
}

func (k *knownPods) get(namespace, name string) (fluentbit.Pod, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := namespace + "/" + name
	if one, ok := k.known[key]; ok && k.now().Before(one.until) {
		return one.pod, one.found
	}
	one := knownPod{until: k.now().Add(podRetry)}
	if pod, err := k.find(namespace, name); err == nil {
		one = knownPod{pod: aboutPod(pod), found: true, until: k.now().Add(podTime)}
	}
	if k.known == nil {
		k.known = map[string]knownPod{}
	}
	k.known[key] = one
	return one.pod, one.found
}

// aboutPod is what the log router adds to lines of a pod.
func aboutPod(pod *corev1.Pod) fluentbit.Pod {
	about := fluentbit.Pod{UID: string(pod.UID), Node: pod.Spec.NodeName, Labels: pod.Labels, Annotations: pod.Annotations, Images: map[string]string{}}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			about.Images[containers[i].Name] = containers[i].Image
		}
	}
	return about
}
