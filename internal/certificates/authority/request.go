// SPDX-License-Identifier: Apache-2.0

package authority

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"muster.dev/muster/internal/certificates/rotation"
)

// Step is what a request about kubelets' authorities asks for.
type Step string

// The steps.
const (
	// StepCreate makes an authority beside the one that signs. It is trusted and signs nothing.
	StepCreate Step = "Create"
	// StepActivate has it sign, once it is trusted everywhere.
	StepActivate Step = "Activate"
	// StepDelete takes an authority away that does not sign: the new one before it does, or the old one when no node
	// needs it.
	StepDelete Step = "Delete"
)

// Request asks for a step. It is carried out once, by its ID.
type Request struct {
	ID   string
	Step Step
	// Authority is the id of the authority that is to be made, or of the one that is meant, see [Store.IDOf].
	Authority string
}

// Answered is a request that was answered.
type Answered struct {
	ID string `json:"id"`
	// Refused says why it was not carried out; empty if it was.
	Refused string `json:"refused,omitempty"`
}

// Ask carries out a request, unless that was done before, and returns why it was refused, or an empty text. Answer and
// effect are one write.
func (s Store) Ask(q Request, now time.Time) (refused string, err error) {
	k, err := s.Kubelets()
	if err != nil {
		return "", err
	}
	if k.Asked != nil && k.Asked.ID == q.ID {
		return k.Asked.Refused, nil
	}
	if refused, err = s.carryOut(&k, q, now); err != nil {
		return "", err
	}
	k.Asked = &Answered{q.ID, refused}
	return refused, s.change(k)
}

// carryOut changes the record as a request asks for, or says why not.
func (s Store) carryOut(k *Kubelets, q Request, now time.Time) (refused string, err error) {
	r := k.Rotation
	if q.Step == StepCreate {
		if r != nil {
			return fmt.Sprintf("there are two already, %s and %s", r.Old, r.New), nil
		}
		next := k.next()
		if err := s.makeKubelet(next, now); err != nil {
			return "", err
		}
		k.Rotation = new(rotation.Start(k.Current, next, now))
		k.Rotation.Hold = rotation.HoldActivation
		if k.IDs == nil {
			k.IDs = map[string]string{}
		}
		k.IDs[next] = q.Authority
		return "", nil
	}
	name, err := s.named(*k, q.Authority)
	switch {
	case err != nil:
		return "", err
	case name == "":
		return fmt.Sprintf("there is no authority %.64s", q.Authority), nil
	case name == k.Signs():
		return name + " signs", nil
	case r == nil || r.Hold == "":
		return "the rotation that is under way goes on by itself", nil
	case q.Step == StepActivate && r.Hold == rotation.HoldActivation && !r.Distributed.IsZero():
		r.Hold = rotation.HoldRemoval
		return "", nil
	case q.Step == StepActivate && r.Hold == rotation.HoldActivation:
		return name + " is not trusted everywhere yet", nil
	case q.Step == StepActivate:
		return "Muster does not go back to " + name + ", which signed before", nil
	case q.Step != StepDelete:
		return fmt.Sprintf("there is no step %.40q", q.Step), nil
	case r.Hold == rotation.HoldActivation:
		k.Rotation = new(r.Abandon(now))
		return "", nil
	case !r.Removable(now):
		return "nodes may still use certificates of " + name, nil
	}
	r.Hold = ""
	return "", nil
}

// IDOf is the id of an authority: the one that it was asked for with, or one that is made of its certificate.
func (s Store) IDOf(k Kubelets, name string) (string, error) {
	if id := k.IDs[name]; id != "" {
		return id, nil
	}
	ca, err := s.KubeletAuthority(name)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(ca.Raw)
	return "ca-" + hex.EncodeToString(sum[:])[:17], nil
}

// named is the name of the authority with an id; empty if there is none.
func (s Store) named(k Kubelets, id string) (string, error) {
	for _, name := range k.Trusts() {
		is, err := s.IDOf(k, name)
		if err != nil || is == id {
			return name, err
		}
	}
	return "", nil
}
