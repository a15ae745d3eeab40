// SPDX-License-Identifier: Apache-2.0

// Package loginkey reads the public key of a key pair of EC2 for a machine that is launched with it.
//
// As on EC2 a machine keeps the key that it was launched with, whatever becomes of the key pair. So it is read once, before the first launch,
// and a launch that names a key pair which is not there fails.
package loginkey

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
)

// recordType is the spec.type of the records of key pairs, which EC2's API makes.
const recordType = "key-pair"

// Of returns the key pair that a machine is launched with; the zero value if it names none, or if it was launched before.
func Of(ctx context.Context, management client.Reader, m *v1alpha1.Machine, was machine.Instance) (machine.Key, error) {
	if m.Spec.KeyName == "" || was.ID != "" {
		return machine.Key{}, nil
	}
	var all v1alpha1.AWSRecordList
	if err := management.List(ctx, &all); err != nil {
		return machine.Key{}, fmt.Errorf("listing key pairs: %w", err)
	}
	var unread error // a record that somebody wrote by hand keeps no machine from its own key
	for i := range all.Items {
		record := &all.Items[i]
		if record.Spec.Type != recordType {
			continue
		}
		var pair struct {
			Name      string `json:"name"`
			PublicKey string `json:"publicKey"`
		}
		if err := json.Unmarshal(record.Spec.Data.Raw, &pair); err != nil {
			unread = errors.Join(unread, fmt.Errorf("reading key pair %s: %w", record.Name, err))
			continue
		}
		if pair.Name == m.Spec.KeyName {
			key := machine.Key{Name: pair.Name, Public: pair.PublicKey}
			return key, key.Validate()
		}
	}
	if unread != nil {
		return machine.Key{}, unread
	}
	return machine.Key{}, fmt.Errorf("the key pair '%.255s' does not exist: make it by aws ec2 create-key-pair or import-key-pair", m.Spec.KeyName)
}

// NoServer is the reason of the Event of a machine with a key pair whose host has no sshd.
const NoServer = "NoSSHServer"
