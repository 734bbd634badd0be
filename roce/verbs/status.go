package verbs

// Status says how a work request ended, with the values of enum ibv_wc_status.
type Status uint8

// The statuses that this transport reports.
const (
	StatusSuccess      Status = 0
	StatusLocLenErr    Status = 1
	StatusLocQPOpErr   Status = 2
	StatusLocProtErr   Status = 4
	StatusWRFlushErr   Status = 5
	StatusMWBindErr    Status = 6
	StatusBadRespErr   Status = 7
	StatusLocAccessErr Status = 8
	StatusRemInvReqErr Status = 9
	StatusRemAccessErr Status = 10
	StatusRemOpErr     Status = 11
	StatusRetryExcErr  Status = 12
	StatusRNRRetryExc  Status = 13
	StatusGeneralErr   Status = 21

	statusCount = 22
)

var statusNames = [statusCount]string{
	StatusSuccess:      "success",
	StatusLocLenErr:    "local length error",
	StatusLocQPOpErr:   "local QP operation error",
	StatusLocProtErr:   "local protection error",
	StatusWRFlushErr:   "Work Request Flushed Error",
	StatusMWBindErr:    "memory bind operation error",
	StatusBadRespErr:   "bad response error",
	StatusLocAccessErr: "local access error",
	StatusRemInvReqErr: "remote invalid request error",
	StatusRemAccessErr: "remote access error",
	StatusRemOpErr:     "remote operation error",
	StatusRetryExcErr:  "transport retry counter exceeded",
	StatusRNRRetryExc:  "RNR retry counter exceeded",
	StatusGeneralErr:   "general error",
}

// String returns the status in the words of ibv_wc_status_str.
func (s Status) String() string {
	if int(s) < len(statusNames) && statusNames[s] != "" {
		return statusNames[s]
	}
	return "unknown"
}
