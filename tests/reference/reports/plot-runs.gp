$runs << EOD
0 0.139698386 
0 0.325962901 
2 0.353902578 
3 0.540167093 
5 0.353902578 
8 0.167638063 
8 0.139698386 
8 0.139698386 


0 0.139698386 
0 0.325962901 
2 0.353902578 
3 0.540167093 
5 0.353902578 
8 0.167638063 
8 0.139698386 
8 0.139698386 


EOD
zp_title = 'Runs compared: memory of a rank'
zp_end = 8.0
zp_capacity = 0.651925802
zp_capacity_text = 'capacity 0.65 GiB'
zp_top = 0.730156898
array zp_name[2] = ['first, peak 0.54 GiB', 'it''s  second , peak 0.54 GiB']
array zp_series[8] = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#4d4d4d', '#a89b00']
zp_n = 2.0
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
# Memory of a rank over time, several runs.
set xlabel 'time (ms)'
set ylabel 'allocated memory (GiB)'
set xrange [0:zp_end]
set yrange [0:zp_top]
zp_line = zp_capacity <= zp_top ? zp_capacity : NaN
plot for [i = 1:int(zp_n)] $runs index i - 1 using 1:2 with steps lw 2 lc rgb zp_series[1 + (i - 1) % 8] \
         dt 1 + (i - 1) / 8 title zp_name[i], \
     zp_capacity > 0 ? zp_line : NaN with lines lc rgb '#c00000' lw 2 dt 2 \
         title (zp_capacity > 0 ? zp_capacity_text : '')
