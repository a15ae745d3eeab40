// SPDX-License-Identifier: Apache-2.0

package podwebhookcert

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/internal/iam/podwebhookconfig"
	"muster.dev/muster/internal/platform/atomicfile"
)

const (
	// every is the pause between two rounds, again that after one that failed, and timeout how long one may take.
	every, again, timeout = 30 * time.Second, 5 * time.Second, 20 * time.Second
	// keyCertificate and keyKey are those of the Secret.
	keyCertificate, keyKey = "ca.crt", "ca.key"
)

// Keeper keeps the certificate of one replica.
type Keeper struct {
	Client kubernetes.Interface
	Config podwebhookconfig.Authority
	Path   string // of the file with certificate and key
	Logger *slog.Logger

	issued *x509.Certificate // that the file holds
}

// First makes the certificate, however often that takes. The error is the context's.
func (k *Keeper) First(ctx context.Context) error {
	for {
		if k.tell(k.round(ctx, time.Now())); k.issued != nil {
			return nil
		}
		if err := pause(ctx, again); err != nil {
			return err
		}
	}
}

// Run keeps it until the context ends.
func (k *Keeper) Run(ctx context.Context) {
	for wait := every; pause(ctx, wait) == nil; {
		wait = every
		if err := k.round(ctx, time.Now()); err != nil {
			k.tell(err)
			wait = again
		}
	}
}

func (k *Keeper) tell(err error) {
	if err != nil {
		k.Logger.Warn("the webhook's certificate cannot be looked after: again in a moment", "error", err)
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// round brings Secret, configuration and file to what they should be, in this order.
func (k *Keeper) round(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	a, err := k.authority(ctx, now)
	if err != nil {
		return err
	}
	published, err := k.publish(ctx, a.bundle())
	if err != nil {
		return err
	}
	if k.issued != nil && !k.due(a, now) {
		return nil
	}
	// An API server hears of an authority a moment after it was published. Until then the certificate of the earlier
	// authority stays in use, because the API server trusts it already.
	young := now.Before(a.certificate.NotBefore.Add(ahead + every))
	if (published || young) && k.issued != nil && now.Before(k.issued.NotAfter) && believes(a, k.issued) {
		return nil
	}
	certificate, file, err := a.issue(k.Config.Service+"."+k.Config.Namespace+".svc", now)
	if err != nil {
		return err
	}
	if err := atomicfile.Replace(k.Path, file, 0o600); err != nil {
		return fmt.Errorf("writing the webhook's certificate: %w", err)
	}
	k.issued = certificate
	k.Logger.Info("the webhook has a certificate", "until", certificate.NotAfter, "authority_until", a.certificate.NotAfter)
	return nil
}

// due reports whether there must be another certificate: two thirds of its life are over, or another authority signs.
func (k *Keeper) due(a authority, now time.Time) bool {
	third := k.issued.NotAfter.Sub(k.issued.NotBefore) / 3
	return now.After(k.issued.NotAfter.Add(-third)) || k.issued.CheckSignatureFrom(a.certificate) != nil
}

// believes reports whether an API server that has the bundle believes a certificate.
func believes(a authority, c *x509.Certificate) bool {
	return slices.ContainsFunc(a.believed, func(by *x509.Certificate) bool { return c.CheckSignatureFrom(by) == nil })
}

// authority reads the authority, and makes one if there is none or it grows old.
func (k *Keeper) authority(ctx context.Context, now time.Time) (authority, error) {
	secrets := k.Client.CoreV1().Secrets(k.Config.Namespace)
	secret, err := secrets.Get(ctx, k.Config.Secret, metav1.GetOptions{})
	if err != nil {
		return authority{}, fmt.Errorf("reading the Secret of the webhook's authority: %w", err)
	}
	if secret.Type != corev1.SecretTypeOpaque && secret.Type != "" {
		return authority{}, fmt.Errorf("the Secret %s/%s is of type %s: it must be Opaque", secret.Namespace, secret.Name, secret.Type)
	}
	a, err := readAuthority(secret.Data[keyCertificate], secret.Data[keyKey])
	switch {
	case err == nil && !a.old(now):
		return a, nil
	case err != nil && len(secret.Data) > 0:
		k.Logger.Warn("the Secret of the webhook's authority is damaged: there will be another", "error", err)
	}
	next, err := newAuthority(now, a.believed)
	if err != nil {
		return authority{}, err
	}
	key, err := next.keyPEM()
	if err != nil {
		return authority{}, err
	}
	secret.Data = map[string][]byte{keyCertificate: next.bundle(), keyKey: key}
	if _, err := secrets.Update(ctx, secret, metav1.UpdateOptions{}); err != nil { // a conflict, too: another replica was first
		return authority{}, fmt.Errorf("writing the Secret of the webhook's authority: %w", err)
	}
	return next, nil
}

// publish has the API server believe the authorities, and reports whether it did not before.
func (k *Keeper) publish(ctx context.Context, bundle []byte) (changed bool, err error) {
	configurations := k.Client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	configuration, err := configurations.Get(ctx, k.Config.WebhookConfiguration, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("reading the webhook's configuration: %w", err)
	}
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	var patch []operation
	for n, w := range configuration.Webhooks {
		if s := w.ClientConfig.Service; s == nil || s.Name != k.Config.Service || s.Namespace != k.Config.Namespace || bytes.Equal(w.ClientConfig.CABundle, bundle) {
			continue
		}
		patch = append(patch,
			operation{"test", fmt.Sprintf("/webhooks/%d/name", n), w.Name},
			operation{"add", fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", n), bundle})
	}
	if len(configuration.Webhooks) == 0 {
		return false, errors.New("the webhook's configuration has no webhooks: apply the manifests again")
	}
	if len(patch) == 0 {
		return false, nil
	}
	raw, err := json.Marshal(patch)
	if err != nil {
		return false, err
	}
	if _, err := configurations.Patch(ctx, configuration.Name, types.JSONPatchType, raw, metav1.PatchOptions{}); err != nil {
		return false, fmt.Errorf("writing the webhook's configuration: %w", err)
	}
	return true, nil
}
