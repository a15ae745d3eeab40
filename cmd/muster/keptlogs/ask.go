// SPDX-License-Identifier: Apache-2.0

package keptlogs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/logsinsights/evaluation"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/logevent"
	"muster.dev/muster/internal/plane/logquery"
	"muster.dev/muster/internal/plane/logstore"
	"muster.dev/muster/internal/platform/statedir"
)

// Answer is what the log store says about a cluster.
type Answer struct {
	// Cluster is the spec.name of the cluster, and Types are its log types that are on.
	Cluster string
	Types   []v1alpha1.LoggingType
	Result  *evaluation.Result
}

// Ask answers a question about the logs of a cluster. The question's Logs are the cluster's, whatever they were. Where no log store listens
// the error is a *logquery.NoStoreError; others are those of logquery.Question.Answer, and of reading the cluster's record.
func Ask(ctx context.Context, dir statedir.Dir, cluster statedir.Cluster, question logquery.Question) (Answer, error) {
	config, err := clusterconfig.Read(cluster.Record())
	if err != nil {
		return Answer{}, err
	}
	spec := config.Cluster.Spec
	question.Logs = []string{component.DefaultAccount + ":" + logevent.LogGroup(spec.Name)}
	store := statedir.LogStore(dir)
	result, err := question.Answer(ctx, &logstore.Store{Socket: store.Socket()})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		_, unmade := os.Stat(store.Data())
		return Answer{}, &logquery.NoStoreError{Cluster: spec.Name, Kept: unmade == nil}
	}
	if err != nil {
		return Answer{}, err
	}
	return Answer{Cluster: spec.Name, Types: spec.EKS.LoggingTypes, Result: result}, nil
}
