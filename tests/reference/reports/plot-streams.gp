zp_n_phases = 2
array zp_phase[2] = ['forward', 'backward']
array zp_phase_start[2] = [2, 6]
array zp_phase_end[2] = [5, 8]
$works << EOD
0 2 1 0xe69f00 1
2 5 2 0x0072b2 1
3 6 1 0xe69f00 1
6 8 2 0x56b4e9 1
EOD
zp_n = 3.0
array zp_kind[3] = ['forward', 'backward', 'all-gather']
array zp_color[3] = ['#0072b2', '#56b4e9', '#e69f00']
zp_title = 'first: work on the streams of a rank'
zp_end = 8.0
zp_n_streams = 2.0
array zp_stream[2] = ['compute', 'gather']
# Shared by all plots.
set border 3 lc rgb '#404040'
set tics nomirror out tc rgb '#404040'
set grid ytics lc rgb '#e4e4e4' lw 1
set key outside right top reverse Left samplen 2.6 spacing 1.15 tc rgb '#202020'
set title zp_title font ',20' tc rgb '#101010'
set lmargin 11
set bmargin 4.5
set style fill solid 1.0 noborder
set style textbox opaque noborder margins 0.6, 0.4
# Work on the streams of a rank.
set xlabel 'time (ms)'
set xrange [0:zp_end]
set yrange [0.4:zp_n_streams + 0.6]
set tmargin 5
set lmargin 18
set title offset 0, 1
unset grid
set ytics scale 0 ()
do for [i = 1:int(zp_n_streams)] {
    set ytics add (zp_stream[i] zp_n_streams - i + 1)
}
do for [i = 1:zp_n_phases] {
    set object rectangle from zp_phase_start[i], graph 0 to zp_phase_end[i], graph 1 behind \
        fc rgb (i % 2 ? '#f3f3f3' : '#e6e6e6') fs solid noborder
    if (zp_phase_end[i] - zp_phase_start[i] > 0.07 * zp_end) {
        set label zp_phase[i] at (zp_phase_start[i] + zp_phase_end[i]) / 2, graph 1.035 center \
            tc rgb '#606060'
    }
}
plot $works using ($5 == 0 ? $1 : NaN):3:1:2:($3 - 0.36):($3 + 0.36):4 with boxxyerror \
         fs solid noborder lc rgb variable notitle, \
     $works using ($5 == 1 ? $1 : NaN):3:1:2:($3 - 0.36):($3 + 0.36):4 with boxxyerror \
         fs solid border lc rgb 'white' lw 0.4 lc rgb variable notitle, \
     for [i = 1:int(zp_n)] keyentry with boxes lc rgb zp_color[i] title zp_kind[i]
