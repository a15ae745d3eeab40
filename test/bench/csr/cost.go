// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"muster.dev/muster/test/plane"
)

// cost is what everything has cost so far.
type cost struct {
	controller, apiServer, etcd, generator plane.Usage
	requests                               map[string]float64
	refused                                float64 // with 429
}

// read takes the figures. The API server's own take some of its time to write, so they come first before a load and
// last after it: read does both, with the processes in between.
func (m *meter) read(ctx context.Context) (cost, error) {
	var c cost
	var err error
	if c.requests, c.refused, err = m.requests(ctx); err != nil {
		return c, err
	}
	for process, into := range map[int]*plane.Usage{
		m.controller.PID: &c.controller, m.plane.APIServer.PID: &c.apiServer, m.plane.Etcd.PID: &c.etcd, os.Getpid(): &c.generator,
	} {
		if *into, err = plane.UsageOf(process); err != nil {
			return c, err
		}
	}
	return c, nil
}

// requests reads how many requests the API server has answered, by what they were about.
func (m *meter) requests(ctx context.Context) (map[string]float64, float64, error) {
	raw, err := m.plane.Admin().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(only(raw, "apiserver_request_total", "apiserver_flowcontrol_rejected_requests_total")))
	if err != nil {
		return nil, 0, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	counts := map[string]float64{}
	for _, metric := range families["apiserver_request_total"].GetMetric() {
		if name := nameOf(metric); name != "" {
			counts[name] += metric.GetCounter().GetValue()
		}
	}
	refused := 0.0
	for _, metric := range families["apiserver_flowcontrol_rejected_requests_total"].GetMetric() {
		refused += metric.GetCounter().GetValue()
	}
	return counts, refused, nil
}

// only keeps the lines of some metrics: the API server has tens of thousands.
func only(raw []byte, names ...string) []byte {
	var kept []byte
	for line := range bytes.Lines(raw) {
		for _, name := range names {
			if bytes.HasPrefix(line, []byte(name+"{")) || bytes.HasPrefix(line, []byte("# TYPE "+name+" ")) {
				kept = append(kept, line...)
			}
		}
	}
	return kept
}

// nameOf is what a request was about, such as "PUT certificatesigningrequests/status", or "" if it has nothing to do
// with certificates: kube-controller-manager has other work as well.
func nameOf(metric *dto.Metric) string {
	label := map[string]string{}
	for _, l := range metric.GetLabel() {
		label[l.GetName()] = l.GetValue()
	}
	resource, verb := label["resource"], label["verb"]
	if label["subresource"] != "" {
		resource += "/" + label["subresource"]
	}
	write := verb == "POST" || verb == "PUT" || verb == "PATCH" || verb == "APPLY" || verb == "DELETE"
	switch {
	case strings.HasPrefix(resource, "certificatesigningrequests") && verb != "WATCH" && verb != "LIST" && verb != "DELETECOLLECTION",
		resource == "subjectaccessreviews", (resource == "events" || resource == "configmaps") && write:
		return verb + " " + resource
	}
	return ""
}

// since is the difference, per request.
func (c cost) since(before cost, n int) result {
	ms := func(a, b plane.Usage) float64 { return float64(a.CPU-b.CPU) / float64(time.Millisecond) / float64(n) }
	r := result{
		ControllerCPU: ms(c.controller, before.controller), APIServerCPU: ms(c.apiServer, before.apiServer),
		EtcdCPU: ms(c.etcd, before.etcd), GeneratorCPU: ms(c.generator, before.generator),
		Peak: float64(c.controller.Peak) / (1 << 20), Refused: c.refused - before.refused, Requests: map[string]float64{},
	}
	for name, count := range c.requests {
		d := (count - before.requests[name]) / float64(n)
		switch {
		case d == 0:
		case name == "POST certificatesigningrequests": // the kubelets'
		default:
			r.Requests[name] = d
			r.PerCSR += d
		}
	}
	r.Reviews = r.Requests["POST subjectaccessreviews"]
	return r
}
