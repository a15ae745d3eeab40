// SPDX-License-Identifier: Apache-2.0

package certificatecontroller

import (
	"context"
	"fmt"

	"muster.dev/muster/internal/certificates/csrcontroller"
	"muster.dev/muster/internal/certificates/policyconfig"
	"muster.dev/muster/internal/certificates/signer"
)

// signers says how the certificates of each signer are made. In a mode that signs nothing no key is touched.
func (a *assembled) signers(ctx context.Context) (map[string]csrcontroller.Issuance, error) {
	file := a.config.Policy
	keys := map[string]signer.Signer{}
	if mode := csrcontroller.Mode(file.Mode); mode == csrcontroller.ApproveAndSign || mode == csrcontroller.SignOnly {
		for _, k := range file.Keys {
			made, err := a.key(ctx, k)
			if err != nil {
				return nil, fmt.Errorf("key %s: %w", k.Name, err)
			}
			keys[k.Name] = made
		}
	}
	signers := make(map[string]csrcontroller.Issuance, len(file.Signers))
	for _, s := range file.Signers {
		profile, err := s.PKIProfile()
		if err != nil {
			return nil, err
		}
		issuance := csrcontroller.Issuance{Profile: profile, Duration: s.Life(), Key: s.Key}
		if k, ok := keys[s.Key]; ok {
			issuance.Signer = k
		}
		signers[s.Name] = issuance
	}
	return signers, nil
}

func (a *assembled) key(ctx context.Context, k policyconfig.Key) (signer.Signer, error) {
	if k.File != nil {
		return signer.NewFile(signer.FileConfig{CertFile: k.File.Certificate, KeyFile: k.File.Key, Logger: a.config.Logger})
	}
	token, err := signer.NewPKCS11(signer.PKCS11Config{
		Program: k.PKCS11.Program, Module: k.PKCS11.Module, Token: k.PKCS11.Token, KeyLabel: k.PKCS11.KeyLabel, KeyID: k.PKCS11.KeyID,
		PINFile: k.PKCS11.PINFile, Sessions: k.PKCS11.Sessions, Logger: a.config.Logger,
	})
	if err != nil {
		return nil, err
	}
	a.cleanup = append(a.cleanup, token.Close)
	return signer.New(ctx, signer.Config{Certificate: k.PKCS11.Certificate, Key: token.Key, Logger: a.config.Logger})
}
