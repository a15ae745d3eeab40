// SPDX-License-Identifier: Apache-2.0

package simulated_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// podReader is the user that the simulator reads pods as.
const podReader = "muster:simulator"

// podServer is the part of the API server that knows pods. The mutex of the API server guards it.
type podServer struct {
	pods     map[string]*corev1.Pod // by namespace/name
	version  int
	watchers []chan metav1.WatchEvent
	// drops the resources of pods from statuses, as an older API server does.
	drops bool
}

// servePods adds the paths of pods.
func (s *apiServer) servePods(mux *http.ServeMux) {
	s.podServer = podServer{pods: map[string]*corev1.Pod{}, version: 1000}
	mux.HandleFunc("GET /api/v1/pods", s.watchPods)
	mux.HandleFunc("PUT /api/v1/namespaces/{namespace}/pods/{name}/status", s.putPodStatus)
	mux.HandleFunc("DELETE /api/v1/namespaces/{namespace}/pods/{name}", s.deletePod)
}

// readsPods reports whether a request is the one watch of the simulator.
func readsPods(r *http.Request) bool {
	return len(r.TLS.PeerCertificates) > 0 && r.TLS.PeerCertificates[0].Subject.CommonName == podReader && r.Method == http.MethodGet && r.URL.Path == "/api/v1/pods"
}

// podReaderFile writes the certificate of the user that reads pods.
func (s *apiServer) podReaderFile(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: podReader}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, s.ca, key.Public(), s.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "reader.pem")
	content := slices.Concat(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// watchPods answers the streaming list of a reflector, and goes on with what changes.
func (s *apiServer) watchPods(w http.ResponseWriter, r *http.Request) {
	if !readsPods(r) || r.URL.Query().Get("sendInitialEvents") != "true" {
		s.fail(w, http.StatusForbidden)
		return
	}
	news := make(chan metav1.WatchEvent, 1000)
	s.mutex.Lock()
	for _, pod := range s.pods {
		news <- s.event("ADDED", pod)
	}
	end := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(s.version), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
	news <- s.event("BOOKMARK", end)
	s.watchers = append(s.watchers, news)
	s.mutex.Unlock()
	w.Header().Set("Content-Type", "application/json")
	encoder, flusher := json.NewEncoder(w), http.NewResponseController(w)
	for {
		select {
		case event := <-news:
			if encoder.Encode(event) != nil || flusher.Flush() != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

func (s *apiServer) event(kind string, pod *corev1.Pod) metav1.WatchEvent {
	told := pod.DeepCopy()
	told.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	raw, err := json.Marshal(told)
	if err != nil {
		s.t.Errorf("encoding a pod: %v", err)
	}
	return metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: raw}}
}

// keepPod stores a pod and tells whoever watches; the caller holds the mutex.
func (s *apiServer) keepPod(kind string, pod *corev1.Pod) {
	s.version++
	pod.ResourceVersion = strconv.Itoa(s.version)
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	if kind == "DELETED" {
		delete(s.pods, pod.Namespace+"/"+pod.Name)
	} else {
		s.pods[pod.Namespace+"/"+pod.Name] = pod
	}
	for _, watcher := range s.watchers {
		watcher <- s.event(kind, pod)
	}
}

// bind makes a pod that is bound to a node.
func (s *apiServer) bind(name, node string, change ...func(*corev1.Pod)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-of-" + name), Generation: 1, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			NodeName: node, RestartPolicy: corev1.RestartPolicyAlways,
			Containers: []corev1.Container{{Name: "web", Image: "nginx:1", Command: []string{"serve"}, Env: []corev1.EnvVar{{Name: "A", Value: "B"}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, c := range change {
		c(pod)
	}
	s.keepPod("ADDED", pod)
}

// mayWrite answers a write of a pod that is not there or is bound to another node, as NodeRestriction does.
func (s *apiServer) mayWrite(w http.ResponseWriter, r *http.Request) *corev1.Pod {
	pod, ok := s.pods[r.PathValue("namespace")+"/"+r.PathValue("name")]
	switch {
	case !ok:
		s.fail(w, http.StatusNotFound)
		return nil
	case r.TLS.PeerCertificates[0].Subject.CommonName != "system:node:"+pod.Spec.NodeName:
		s.t.Errorf("%s writes about a pod of %s", r.TLS.PeerCertificates[0].Subject.CommonName, pod.Spec.NodeName)
		s.fail(w, http.StatusForbidden)
		return nil
	}
	return pod
}

func (s *apiServer) putPodStatus(w http.ResponseWriter, r *http.Request) {
	sent, ok := s.read(r).(*corev1.Pod)
	if !ok {
		s.fail(w, http.StatusBadRequest)
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	pod := s.mayWrite(w, r)
	switch {
	case pod == nil:
		return
	case sent.ResourceVersion != pod.ResourceVersion || sent.UID != pod.UID:
		s.fail(w, http.StatusConflict)
		return
	case sent.Labels["app"] != pod.Labels["app"]:
		s.t.Errorf("a node changes labels to %v", sent.Labels)
	}
	written := pod.DeepCopy()
	written.Status = sent.Status
	if s.drops {
		written.Status.Resources, written.Status.AllocatedResources = nil, nil
	}
	s.keepPod("MODIFIED", written)
	s.answer(w, written)
}

func (s *apiServer) deletePod(w http.ResponseWriter, r *http.Request) {
	options, _ := s.read(r).(*metav1.DeleteOptions)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	pod := s.mayWrite(w, r)
	if pod == nil {
		return
	}
	if options == nil || options.GracePeriodSeconds == nil || *options.GracePeriodSeconds != 0 || options.Preconditions == nil || *options.Preconditions.UID != pod.UID {
		s.t.Errorf("a pod is removed with %+v, want a grace period of 0 and its UID", options)
	}
	if phase := pod.Status.Phase; phase != corev1.PodFailed && phase != corev1.PodSucceeded {
		s.t.Errorf("a pod is removed that is %s", phase)
	}
	s.keepPod("DELETED", pod.DeepCopy())
	s.answer(w, &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess})
}

// evict deletes a pod, which has a grace period from now.
func (s *apiServer) evict(name string, grace time.Duration) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	pod := s.pods["default/"+name].DeepCopy()
	at, seconds := metav1.NewTime(time.Now().Add(grace).Truncate(time.Second)), int64(grace/time.Second)
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &at, &seconds
	s.keepPod("MODIFIED", pod)
}

// podRange is the range of the pods of the node that was made as number i.
func podRange(i int) string { return fmt.Sprintf("10.244.%d.0/24", i) }
