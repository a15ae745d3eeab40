// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/certificates/rotation"
)

// Kubelets is the authority of a cluster's kubelets for those that ask about it, while a Rotator replaces it or does
// not run.
type Kubelets struct {
	keys *Keys
	log  *slog.Logger
	wake chan struct{} // the Rotator looks at once

	mu       sync.Mutex
	waits    string
	progress *rotation.Progress
}

// NewKubelets returns the authority of the kubelets of the cluster that the keys are of.
func NewKubelets(keys *Keys, log *slog.Logger) *Kubelets {
	return &Kubelets{keys: keys, log: log, wake: make(chan struct{}, 1)}
}

// Run has a Rotator that reports to Report run until the context ends.
func (k *Kubelets) Run(ctx context.Context, r *Rotator) { r.Run(ctx, k.wake) }

// Report keeps what a rotation waits for, for Rotation and Answer.
func (k *Kubelets) Report(waits string, progress *rotation.Progress) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.waits = waits
	if progress != nil || waits == "" {
		k.progress = progress
	}
}

// Start begins to replace the authority, unless that is under way.
func (k *Kubelets) Start() error {
	if err := k.keys.StartRotation(time.Now()); err != nil {
		return err
	}
	k.look()
	return nil
}

// look has the Rotator look at once.
func (k *Kubelets) look() {
	select {
	case k.wake <- struct{}{}:
	default: // it is about to look
	}
}

// Rotation returns the record of the authorities, and what the rotation under way waits for and how far it is.
func (k *Kubelets) Rotation() (record authority.Kubelets, waits string, progress *rotation.Progress, err error) {
	if record, err = k.keys.Kubelets(); err != nil || record.Rotation == nil {
		return record, "", nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return record, k.waits, k.progress, nil
}

// Answer carries out a request about the authorities, unless that was done before, and says which there are.
func (k *Kubelets) Answer(request *v1alpha1.KubeletAuthorityRequest) ([]v1alpha1.KubeletAuthority, *v1alpha1.KubeletAuthorityAnswer, error) {
	record, err := k.keys.Kubelets()
	if err != nil {
		return nil, nil, err
	}
	if request != nil && (record.Asked == nil || record.Asked.ID != request.ID) {
		refused, err := k.keys.Ask(authority.Request{ID: request.ID, Step: authority.Step(request.Step), Authority: request.Authority}, time.Now())
		if err != nil {
			return nil, nil, err
		}
		k.log.Info("a step of replacing kubelets' authority was asked for", "step", request.Step, "authority", request.Authority, "refused", refused)
		k.look()
		if record, err = k.keys.Kubelets(); err != nil {
			return nil, nil, err
		}
	}
	k.mu.Lock()
	waits := k.waits
	k.mu.Unlock()
	all, err := KubeletAuthorities(k.keys.Store, record, waits, time.Now())
	if err != nil {
		return nil, nil, err
	}
	var answer *v1alpha1.KubeletAuthorityAnswer
	if record.Asked != nil {
		answer = &v1alpha1.KubeletAuthorityAnswer{ID: record.Asked.ID, Refused: record.Asked.Refused}
	}
	return all, answer, nil
}
