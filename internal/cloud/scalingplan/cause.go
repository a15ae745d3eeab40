// SPDX-License-Identifier: Apache-2.0

package scalingplan

import (
	"fmt"
	"time"
)

// The causes of activities, in the words of Auto Scaling (docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-verify-scaling-activity.html).

const differs = "in response to a difference between desired and actual capacity"

func at(now time.Time) string { return "At " + now.UTC().Format(time.RFC3339) }

func grown(now time.Time, change string, from, to int) string {
	cause := fmt.Sprintf("%s an instance was started %s, increasing the capacity from %d to %d.", at(now), differs, from, to)
	if change != "" {
		return change + "  " + cause
	}
	return cause
}

func replacing(now time.Time) string {
	return at(now) + " an instance was launched in response to an unhealthy instance needing to be replaced."
}

func shrunk(now time.Time, change, id string, from, to int) string {
	cause := fmt.Sprintf("%s an instance was taken out of service %s, shrinking the capacity from %d to %d.  %s instance %s was selected for termination.", at(now), differs, from, to, at(now), id)
	if change != "" {
		return change + "  " + cause
	}
	return cause
}

func stopped(now time.Time) string {
	return at(now) + " an instance was taken out of service in response to an EC2 health check indicating it has been terminated or stopped."
}

func unhealthy(now time.Time) string {
	return at(now) + " an instance was taken out of service in response to a user health-check."
}

func refreshed(now time.Time) string {
	return at(now) + " an instance was taken out of service in response to an instance refresh."
}

func abandoned(now time.Time, hook string) string {
	return fmt.Sprintf("%s an instance was taken out of service in response to the lifecycle hook %s, whose action was abandoned.", at(now), hook)
}

func deleted(now time.Time) string {
	return at(now) + " an instance was taken out of service in response to the deletion of its group."
}
