// SPDX-License-Identifier: Apache-2.0

package certificatecontroller

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/certificates/bundle"
	"muster.dev/muster/internal/certificates/csrcontroller"
	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/signer"
)

// trustInterval is how often the files of authorities are looked at.
const trustInterval = 10 * time.Second

// publishTrust arranges for the bundles to be published by the leader: the authorities that sign now and those that are
// still trusted beside them, for everything that verifies kubelets' certificates.
func (a *assembled) publishTrust(ctx context.Context, signers map[string]csrcontroller.Issuance) error {
	trust := a.config.Policy.Trust
	if trust == nil || trust.Publish == nil {
		return nil
	}
	for name, t := range map[string]struct {
		signer string
		files  []string
	}{
		bundle.Client:  {pki.SignerKubeletClient, trust.Client},
		bundle.Serving: {pki.SignerKubeletServing, trust.Serving},
	} {
		p := publication{a: a, name: name, signer: signers[t.signer].Signer, files: t.files}
		if p.signer == nil && len(p.files) == 0 {
			continue
		}
		if _, err := p.authorities(ctx); err != nil { // a file that is missing is told at once
			return err
		}
		a.leading = append(a.leading, p.run)
	}
	return nil
}

// publication is one bundle that is published.
type publication struct {
	a      *assembled
	name   string
	signer signer.Signer // nil where somebody else signs
	files  []string
}

func (p publication) run(ctx context.Context) {
	tick := time.NewTicker(trustInterval)
	defer tick.Stop()
	failed := false
	for {
		err := p.publish(ctx)
		if err != nil && !failed && ctx.Err() == nil { // once for each outage
			p.a.config.Logger.Error("authorities not published", "configmap", p.name, "error", err)
		}
		failed = err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (p publication) authorities(ctx context.Context) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	if p.signer != nil {
		issuer, err := p.signer.Issuer(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading the signing certificate: %w", err)
		}
		all = append(all, issuer)
	}
	for _, file := range p.files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading a trusted authority: %w", err)
		}
		trusted, err := bundle.Parse(raw)
		if err != nil {
			return nil, fmt.Errorf("reading a trusted authority: %s: %w", file, err)
		}
		all = append(all, trusted...)
	}
	return all, nil
}

func (p publication) publish(ctx context.Context) error {
	all, err := p.authorities(ctx)
	if err != nil {
		return err
	}
	want := bundle.ConfigMap(p.a.config.Policy.Trust.Publish.Namespace, p.name, all...)
	client := p.a.client.CoreV1().ConfigMaps(want.Namespace)
	have, err := client.Get(ctx, want.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = client.Create(ctx, want, metav1.CreateOptions{})
		return err
	case err != nil:
		return err
	case same(have, want):
		return nil
	}
	have.Data = want.Data
	_, err = client.Update(ctx, have, metav1.UpdateOptions{})
	return err
}

func same(a, b *corev1.ConfigMap) bool {
	return len(a.Data) == len(b.Data) && bytes.Equal([]byte(a.Data[bundle.Key]), []byte(b.Data[bundle.Key]))
}
