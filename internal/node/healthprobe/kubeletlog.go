// SPDX-License-Identifier: Apache-2.0

package healthprobe

import (
	"regexp"
	"sync"
)

var (
	// forkFailed is what the kubelet writes when it, or containerd for it, gets no process or thread (the agent of EKS has
	// the same expressions).
	forkFailed = regexp.MustCompile(`fork/exec.*resource temporarily unavailable|failed to create new OS thread.*errno=11`)
	// registered is what a kubelet writes when the API server has its Node (pkg/kubelet/kubelet_node_status.go).
	registered = regexp.MustCompile(`"Successfully registered node"`)
	// failing are klog's lines of errors, without those that say nothing: until its Node is registered a kubelet repeats
	// that no mirror pod can be.
	failing = regexp.MustCompile(`^[EF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ (.*)`)
	silence = regexp.MustCompile(`mirror pod`)
)

// longestKept bounds what is kept of a line, in bytes.
const longestKept = 700

// KubeletLog remembers what matters of the lines of a kubelet.
type KubeletLog struct {
	mutex      sync.Mutex
	forks      bool
	registered bool
	failure    string
}

// Line takes in a line, which may be read again by others and is not kept.
func (k *KubeletLog) Line(line []byte) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if forkFailed.Match(line) {
		k.forks = true
	}
	if !k.registered && registered.Match(line) {
		k.registered = true
	}
	if match := failing.FindSubmatch(line); match != nil && !k.registered && !silence.Match(line) {
		k.failure = string(match[1][:min(len(match[1]), longestKept)])
	}
}

// Forks reports whether the kubelet got no process or thread since it was asked last.
func (k *KubeletLog) Forks() bool {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	forks := k.forks
	k.forks = false
	return forks
}

// Registered reports whether the kubelet has said that its Node is registered, and its last error before that.
func (k *KubeletLog) Registered() (registered bool, failure string) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.registered, k.failure
}
