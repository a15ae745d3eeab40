// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/certificates/rotator"
)

// kubeletAuthorities carries out a request about kubelets' authorities, unless that was done before, and says which
// there are.
func (h *hosted) kubeletAuthorities(request *v1alpha1.KubeletAuthorityRequest) ([]v1alpha1.KubeletAuthority, *v1alpha1.KubeletAuthorityAnswer, error) {
	k, err := h.keys.Kubelets()
	if err != nil {
		return nil, nil, err
	}
	if request != nil && (k.Asked == nil || k.Asked.ID != request.ID) {
		refused, err := h.keys.Ask(authority.Request{ID: request.ID, Step: authority.Step(request.Step), Authority: request.Authority}, time.Now())
		if err != nil {
			return nil, nil, err
		}
		h.log.Info("a step of replacing kubelets' authority was asked for", "step", request.Step, "authority", request.Authority, "refused", refused)
		select {
		case h.rotate <- struct{}{}:
		default: // it is about to look
		}
		if k, err = h.keys.Kubelets(); err != nil {
			return nil, nil, err
		}
	}
	h.mu.Lock()
	waits := h.rotationWaits
	h.mu.Unlock()
	all, err := rotator.KubeletAuthorities(h.keys.Store, k, waits, time.Now())
	if err != nil {
		return nil, nil, err
	}
	var answer *v1alpha1.KubeletAuthorityAnswer
	if k.Asked != nil {
		answer = &v1alpha1.KubeletAuthorityAnswer{ID: k.Asked.ID, Refused: k.Asked.Refused}
	}
	return all, answer, nil
}
