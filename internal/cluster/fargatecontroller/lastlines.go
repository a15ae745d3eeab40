// SPDX-License-Identifier: Apache-2.0

package fargatecontroller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/api/v1alpha1"
)

// lastLines is how long a machine stays when its pod is gone, so that its log router sends what the pod wrote last: CloudWatch Logs
// answers when that is on the disk.
const lastLines = 10 * time.Second

// leaving remembers since when machines with a log router are without their pods. A service that starts again has forgotten it, and
// gives them the whole time.
type leaving struct {
	mu    sync.Mutex
	since map[types.UID]time.Time
}

// left is how long a machine whose pod is gone stays yet.
func (l *leaving) left(m *v1alpha1.Machine, now time.Time) time.Duration {
	if logging := m.Spec.Fargate.Logging; logging == nil || logging.Output == "" {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	since, ok := l.since[m.UID]
	if !ok {
		if l.since == nil {
			l.since = map[types.UID]time.Time{}
		}
		l.since[m.UID], since = now, now
	}
	left := lastLines - now.Sub(since)
	if left <= 0 {
		delete(l.since, m.UID)
		return 0
	}
	return left
}
