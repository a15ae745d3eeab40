// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"context"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/certificates/pki"
)

// errRefused means that the API server does not take the credential, or not for this. It is not asked again.
var errRefused = errors.New("the API server refuses")

// pause between two attempts to reach the API server.
const retryPause = 250 * time.Millisecond

// follow tells of objects as they are and as they change until told to stop. An API server that is away is asked again
// and again; trouble hears what is wrong with it.
func follow[T runtime.Object](ctx context.Context, list func(context.Context) (objects []T, version string, err error),
	watching func(context.Context, string) (watch.Interface, error), each func(T) (stop bool, err error), trouble func(error),
) error {
	var refused time.Time // since when
	for {
		stop, err := followOnce(ctx, list, watching, each)
		switch {
		case stop:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !apierrors.IsUnauthorized(err) && !apierrors.IsForbidden(err):
			refused = time.Time{}
			if err != nil {
				trouble(err)
			}
		case refused.IsZero():
			refused = time.Now()
		case time.Since(refused) > refusalPatience:
			return fmt.Errorf("%w: %w", errRefused, err)
		}
		if !sleep(ctx, retryPause) {
			return context.Cause(ctx)
		}
	}
}

// followOnce does so until the connection breaks.
func followOnce[T runtime.Object](ctx context.Context, list func(context.Context) ([]T, string, error),
	watching func(context.Context, string) (watch.Interface, error), each func(T) (bool, error),
) (bool, error) {
	objects, version, err := list(ctx)
	if err != nil {
		return false, err
	}
	for _, object := range objects {
		if stop, err := each(object); stop {
			return true, err
		}
	}
	w, err := watching(ctx, version)
	if err != nil {
		return false, err
	}
	defer w.Stop()
	for {
		select {
		case event, ok := <-w.ResultChan():
			if !ok {
				return false, nil
			}
			object, ok := event.Object.(T)
			if event.Type == watch.Error || !ok {
				return false, apierrors.FromObject(event.Object)
			}
			if event.Type == watch.Deleted {
				continue
			}
			if stop, err := each(object); stop {
				return true, err
			}
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// followRequests tells of the requests for certificates of one signer.
func followRequests(ctx context.Context, client kubernetes.Interface, signer string, each func(*certificatesv1.CertificateSigningRequest) (bool, error), trouble func(error)) error {
	requests := client.CertificatesV1().CertificateSigningRequests()
	selector := fields.OneTermEqualSelector("spec.signerName", signer).String()
	return follow(ctx, func(ctx context.Context) ([]*certificatesv1.CertificateSigningRequest, string, error) {
		found, err := requests.List(ctx, metav1.ListOptions{FieldSelector: selector})
		if err != nil {
			return nil, "", err
		}
		objects := make([]*certificatesv1.CertificateSigningRequest, len(found.Items))
		for i := range found.Items {
			objects[i] = &found.Items[i]
		}
		return objects, found.ResourceVersion, nil
	}, func(ctx context.Context, version string) (watch.Interface, error) {
		return requests.Watch(ctx, metav1.ListOptions{FieldSelector: selector, ResourceVersion: version})
	}, each, trouble)
}

// asksFor reports whether a request is for a node's certificate.
func asksFor(csr *certificatesv1.CertificateSigningRequest, node string) bool {
	request, err := pki.Parse(csr.Spec.Request)
	return err == nil && request.CommonName() == "system:node:"+node
}

// deniedError is what a request came to nothing by.
type deniedError struct{ name, why, signer string }

func (e *deniedError) Error() string {
	what := "client"
	if e.signer == pki.SignerKubeletServing {
		what = "serving"
	}
	return fmt.Sprintf("the request for the node's %s certificate, %s, was refused: %s", what, e.name, e.why)
}

// outcome reads how far a request is, and why: from what the certificate controller wrote into it, or else its
// condition.
func outcome(csr *certificatesv1.CertificateSigningRequest) (csrview.State, string) {
	r := csrview.Of(csr, nil)
	why := r.Why
	switch {
	case why == "":
		why = "no reason was given"
	case r.Rule != "":
		why = fmt.Sprintf("rule %s: %s", r.Rule, why)
	}
	return r.State, why
}

// waitingFor says what an undecided request waits for, and the fix, with the role that can apply it. Why it waits is in
// an Event, which a node may not read.
func waitingFor(csr *certificatesv1.CertificateSigningRequest) string {
	return fmt.Sprintf("%s waits for approval; an administrator sees why with `muster csr explain %s`, and approves it with `muster csr approve %s --reason …` (or `kubectl certificate approve %s`)",
		csr.Name, csr.Name, csr.Name, csr.Name)
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
