// SPDX-License-Identifier: Apache-2.0

package signer_test

import (
	"context"
	"crypto"
	"fmt"

	"muster.dev/muster/internal/certificates/signer"
)

// service stands for the client of a cloud's key service.
type service interface {
	PublicKey(ctx context.Context, name string) (crypto.PublicKey, error)
	SignDigest(ctx context.Context, name string, digest []byte, hash crypto.Hash) ([]byte, error)
}

// kmsKey is all that such a service takes.
type kmsKey struct {
	service service
	name    string
	public  crypto.PublicKey
}

func (k kmsKey) Public() crypto.PublicKey { return k.public }

func (k kmsKey) Sign(ctx context.Context, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	signature, err := k.service.SignDigest(ctx, k.name, digest, opts.HashFunc())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", signer.ErrUnavailable, err)
	}
	return signature, nil
}

func newKMSKey(ctx context.Context, s service, name string) (signer.Key, error) {
	public, err := s.PublicKey(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("asking for the public key of %s: %w", name, err)
	}
	return kmsKey{s, name, public}, nil
}

// A key in a cloud is one file.
func ExampleKey() {
	var client service // = cloud.NewClient(...)
	_ = func(ctx context.Context) (*signer.CA, error) {
		key, err := newKMSKey(ctx, client, "projects/example/keys/kubelets")
		if err != nil {
			return nil, err
		}
		source := func(context.Context) (signer.Key, error) { return key, nil }
		return signer.New(ctx, signer.Config{Certificate: "/etc/muster/ca.crt", Key: source, Logger: discard()})
	}
}
