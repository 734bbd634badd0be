package demo

// A Stage is a part of the demonstration.
type Stage string

// The stages, in their order.
const (
	StageOperations Stage = "operations" // every operation, every byte
	StageCapture    Stage = "capture"    // the packets of those, read back
	StageCopy       Stage = "copy"       // a file
	StageLoss       Stage = "loss"       // a file over a bad cable
	StageMeasure    Stage = "measure"    // rates and round trips
)
