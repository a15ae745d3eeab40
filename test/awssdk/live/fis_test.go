// SPDX-License-Identifier: Apache-2.0

package live

import (
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/fis"
	"github.com/aws/aws-sdk-go-v2/service/fis/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
)

// fisActions are those of experiments. The account has no spot instance: the experiment that is started here is failed,
// and says so. TestExperimentsInterrupt of the stories has one that interrupts.
func fisActions() []action {
	template := func(w *world, ids ...string) *fis.CreateExperimentTemplateInput {
		in := &fis.CreateExperimentTemplateInput{
			Description: aws.String("live"), RoleArn: aws.String(w.notes["role"]), Tags: map[string]string{"team": "a"}, ClientToken: aws.String("live-template"),
			StopConditions: []types.CreateExperimentTemplateStopConditionInput{{Source: aws.String("none")}},
			Actions: map[string]types.CreateExperimentTemplateActionInput{"itn0": {
				ActionId: aws.String("aws:ec2:send-spot-instance-interruptions"), Targets: map[string]string{"SpotInstances": "itn0"},
				Parameters: map[string]string{"durationBeforeInterruption": "PT120S"},
			}},
		}
		target := types.CreateExperimentTemplateTargetInput{ResourceType: aws.String("aws:ec2:spot-instance"), SelectionMode: aws.String("ALL")}
		for _, id := range ids {
			target.ResourceArns = append(target.ResourceArns, "arn:aws:ec2:"+w.config.Region+":"+account+":instance/"+id)
		}
		in.Targets = map[string]types.CreateExperimentTemplateTargetInput{"itn0": target}
		return in
	}
	templateARN := func(w *world) *string {
		return aws.String("arn:aws:fis:" + w.config.Region + ":" + account + ":experiment-template/" + w.notes["template"])
	}
	return []action{
		{"CreateExperimentTemplate", func(w *world) {
			trust := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"fis.amazonaws.com"},"Action":"sts:AssumeRole"}]}`
			w.notes["role"] = *need(w.iam.CreateRole(w.ctx(), &iam.CreateRoleInput{RoleName: aws.String("live-fis"), AssumeRolePolicyDocument: &trust})).Role.Arn
			out := need(w.fis.CreateExperimentTemplate(w.ctx(), template(w, "i-0123456789abcdef0")))
			w.has(out, "ExperimentTemplate.Id", "ExperimentTemplate.Arn", "ExperimentTemplate.RoleArn", "ExperimentTemplate.Actions", "ExperimentTemplate.Targets", "ExperimentTemplate.CreationTime")
			w.notes["template"] = *out.ExperimentTemplate.Id
			if again := need(w.fis.CreateExperimentTemplate(w.ctx(), template(w, "i-0123456789abcdef0"))); *again.ExperimentTemplate.Id != w.notes["template"] {
				w.Errorf("the same request made %s and %s", w.notes["template"], *again.ExperimentTemplate.Id)
			}
			other := template(w, "i-0123456789abcdef0")
			other.Actions["itn0"].Parameters["durationBeforeInterruption"] = "PT1M"
			_, err := w.fis.CreateExperimentTemplate(w.ctx(), other)
			w.refused("ValidationException", err)
		}},
		{"GetExperimentTemplate", func(w *world) {
			out := need(w.fis.GetExperimentTemplate(w.ctx(), &fis.GetExperimentTemplateInput{Id: aws.String(w.notes["template"])}))
			if out.ExperimentTemplate.Tags["team"] != "a" || out.ExperimentTemplate.Actions["itn0"].Targets["SpotInstances"] != "itn0" {
				w.Errorf("%+v", out.ExperimentTemplate)
			}
			_, err := w.fis.GetExperimentTemplate(w.ctx(), &fis.GetExperimentTemplateInput{Id: aws.String("EXTNONE")})
			w.refused("ResourceNotFoundException", err)
		}},
		{"ListExperimentTemplates", func(w *world) {
			w.has(need(w.fis.ListExperimentTemplates(w.ctx(), &fis.ListExperimentTemplatesInput{})), "ExperimentTemplates[].Id", "ExperimentTemplates[].Arn")
		}},
		{"TagResource", func(w *world) {
			need(w.fis.TagResource(w.ctx(), &fis.TagResourceInput{ResourceArn: templateARN(w), Tags: map[string]string{"stage": "b"}}))
		}},
		{"UntagResource", func(w *world) {
			need(w.fis.UntagResource(w.ctx(), &fis.UntagResourceInput{ResourceArn: templateARN(w), TagKeys: []string{"team"}}))
		}},
		{"ListTagsForResource", func(w *world) {
			if out := need(w.fis.ListTagsForResource(w.ctx(), &fis.ListTagsForResourceInput{ResourceArn: templateARN(w)})); len(out.Tags) != 1 || out.Tags["stage"] != "b" {
				w.Errorf("%v", out.Tags)
			}
		}},
		{"StartExperiment", func(w *world) {
			out := need(w.fis.StartExperiment(w.ctx(), &fis.StartExperimentInput{ExperimentTemplateId: aws.String(w.notes["template"]), ClientToken: aws.String("live-experiment")}))
			w.has(out, "Experiment.Id", "Experiment.Arn", "Experiment.ExperimentTemplateId", "Experiment.State.Status", "Experiment.Actions")
			w.notes["experiment"] = *out.Experiment.Id
		}},
		{"GetExperiment", func(w *world) {
			w.eventually(time.Minute, func() error {
				state := need(w.fis.GetExperiment(w.ctx(), &fis.GetExperimentInput{Id: aws.String(w.notes["experiment"])})).Experiment.State
				if state.Status != types.ExperimentStatusFailed || !strings.Contains(*state.Reason, "there is no spot instance") {
					return errors.New(string(state.Status) + ": " + *state.Reason)
				}
				return nil
			})
		}},
		{"ListExperiments", func(w *world) {
			w.has(need(w.fis.ListExperiments(w.ctx(), &fis.ListExperimentsInput{ExperimentTemplateId: aws.String(w.notes["template"])})), "Experiments[].Id", "Experiments[].State.Status")
		}},
		{"StopExperiment", func(w *world) {
			_, err := w.fis.StopExperiment(w.ctx(), &fis.StopExperimentInput{Id: aws.String(w.notes["experiment"])})
			w.refused("ValidationException", err)
		}},
		{"DeleteExperimentTemplate", func(w *world) {
			need(w.fis.DeleteExperimentTemplate(w.ctx(), &fis.DeleteExperimentTemplateInput{Id: aws.String(w.notes["template"])}))
			need(w.iam.DeleteRole(w.ctx(), &iam.DeleteRoleInput{RoleName: aws.String("live-fis")}))
		}},
	}
}
