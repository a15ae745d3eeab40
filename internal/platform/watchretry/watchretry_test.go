// SPDX-License-Identifier: Apache-2.0

package watchretry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// server answers as it did at some time since it was asked first.
type server struct {
	began time.Time
	says  func(since time.Duration) error
	asked int
}

func (s *server) ask() error {
	if s.asked++; s.asked == 1 {
		s.began = time.Now()
	}
	return s.says(time.Since(s.began))
}

func (s *server) listWatch() cache.ListerWatcherWithContext {
	return cache.ToListerWatcherWithContext(New(&cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &certificatesv1.CertificateSigningRequestList{}, s.ask()
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), s.ask() },
	}))
}

func forbidden() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("RBAC knows no roles yet"))
}

// After an outage of minutes, in the end of which the server refuses everybody, both requests are answered within half
// a second.
func TestBackSoonAfterAnOutage(t *testing.T) {
	const outage, cold = 5 * time.Minute, 3 * time.Second
	for name, request := range map[string]func(cache.ListerWatcherWithContext, context.Context) error{
		"list": func(l cache.ListerWatcherWithContext, ctx context.Context) error {
			_, err := l.ListWithContext(ctx, metav1.ListOptions{})
			return err
		},
		"watch": func(l cache.ListerWatcherWithContext, ctx context.Context) error {
			_, err := l.WatchWithContext(ctx, metav1.ListOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{says: func(since time.Duration) error {
					switch {
					case since < outage:
						return errors.New("connection refused")
					case since < outage+cold:
						return forbidden()
					}
					return nil
				}}
				err := request(s.listWatch(), t.Context())
				if took := time.Since(s.began); err != nil || took > outage+cold+longestPause {
					t.Errorf("after %s, %v", took, err)
				}
				if s.asked > 1600 {
					t.Errorf("asked %d times", s.asked)
				}
			})
		})
	}
}

// A server that is back and says that it is not ready is asked again at once, however long it was away.
func TestAServerThatIsBackIsAskedAtOnce(t *testing.T) {
	const outage = 5 * time.Minute
	for range 20 { // pauses are random
		synctest.Test(t, func(t *testing.T) {
			var spoke time.Time
			s := &server{}
			s.says = func(since time.Duration) error {
				switch {
				case since < outage:
					return errors.New("connection refused")
				case spoke.IsZero():
					spoke = time.Now()
					return apierrors.NewServiceUnavailable("not all paths are installed")
				}
				return nil
			}
			_, err := s.listWatch().ListWithContext(t.Context(), metav1.ListOptions{})
			if took := time.Since(spoke); err != nil || took > firstPause {
				t.Errorf("%s after the server was back, %v", took, err)
			}
		})
	}
}

func TestWhatIsMeantIsPassedOn(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		times int
	}{
		"always forbidden": {forbidden(), refusals + 1},
		"expired":          {apierrors.NewResourceExpired("too old"), 1},
		"cannot stream":    {apierrors.NewInvalid(schema.GroupKind{}, "", nil), 1},
		"too many":         {apierrors.NewTooManyRequests("later", 1), 1},
		"no such kind":     {apierrors.NewNotFound(schema.GroupResource{}, "x"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{says: func(time.Duration) error { return c.err }}
				if _, err := s.listWatch().ListWithContext(t.Context(), metav1.ListOptions{}); !errors.Is(err, c.err) || s.asked != c.times {
					t.Errorf("asked %d times, error %v", s.asked, err)
				}
			})
		})
	}
}

func TestItEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s := &server{says: func(time.Duration) error { return errors.New("connection refused") }}
		if _, err := s.listWatch().WatchWithContext(ctx, metav1.ListOptions{}); err == nil || time.Since(s.began) != time.Minute {
			t.Errorf("after %s, %v", time.Since(s.began), err)
		}
	})
}
